package files

import (
	"errors"
	"io"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/node/supervisor/guest/buffer"
	"github.com/drover-project/drover/internal/node/supervisor/wire"
)

// openRegular opens a regular file for reading; a pipe or a device cannot hold us up.
func openRegular(p string) (*os.File, *unix.Stat_t, error) {
	fd, err := unix.Open(p, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	var st unix.Stat_t
	err = unix.Fstat(fd, &st)
	if err == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR {
		err = unix.EISDIR
	} else if err == nil && st.Mode&unix.S_IFMT != unix.S_IFREG {
		err = drover.Errorf(drover.Invalid, "not a regular file")
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, nil, err
	}
	return os.NewFile(uintptr(fd), p), &st, nil
}

// Read tells the description of a regular file to head, and writes its content to w: from the request's offset on, and
// at most its length if that is not 0. Errors: NotFound, Forbidden, Invalid.
func (s *Files) Read(w io.Writer, head func(execution.FileInfo), req execution.FileRequest) error {
	p, err := s.absolute(req.Path)
	if err != nil {
		return err
	}
	if req.Offset < 0 || req.Length < 0 {
		return drover.Errorf(drover.Invalid, "offset and length are not negative")
	}
	var f *os.File
	var st *unix.Stat_t
	// Only the opening needs the user's rights: the kernel checks them there, and the descriptor can then be read by any thread.
	err = s.as(req.Privileged, func() (err error) {
		f, st, err = openRegular(asDirectory(req.Path, p))
		return err
	})
	if err != nil {
		return fileError(req.Path, err)
	}
	defer f.Close()
	head(fileInfo(s.accounts.Read().Names(), st, path.Base(p)))
	if req.Offset > 0 {
		if _, err := f.Seek(req.Offset, io.SeekStart); err != nil {
			return fileError(req.Path, err)
		}
	}
	return copyOut(w, f, req)
}

// copyOut sends what is there; also of files that the kernel makes up, whose size is 0.
func copyOut(w io.Writer, f io.Reader, req execution.FileRequest) error {
	left := req.Length
	b := buffer.Get()
	defer buffer.Put(b)
	for {
		part := b[:wire.DataSize]
		if req.Length > 0 {
			part = part[:min(int64(len(part)), left)]
		}
		if len(part) == 0 {
			return nil
		}
		n, err := f.Read(part)
		left -= int64(n)
		if n > 0 {
			if _, werr := w.Write(part[:n]); werr != nil {
				return werr
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fileError(req.Path, err)
		}
	}
}
