package files

import (
	"archive/tar"
	"bufio"
	"errors"
	"io"
	"os"
	"slices"
	"time"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/node/supervisor/guest/account"
)

// tarBuffer joins tar's headers and small files into fewer frames of the protocol.
const tarBuffer = 64 << 10

// Archive writes a directory to out as tar, with names relative to it. Errors: NotFound, Forbidden, Invalid.
func (s *Files) Archive(out io.Writer, req execution.FileRequest) error {
	dir, err := s.absolute(req.Path)
	if err != nil {
		return err
	}
	err = s.as(req.Privileged, func() error {
		b := bufio.NewWriterSize(out, tarBuffer)
		w := tar.NewWriter(b)
		// Names are read once for the whole archive; a user who is added meanwhile is told by number.
		if err := s.pack(w, s.accounts.Read().Names(), dir, "", 0); err != nil {
			return err
		}
		return errors.Join(w.Close(), b.Flush())
	})
	return fileError(req.Path, err)
}

// pack adds what is in a directory, as deep as maxDepth. What the user may not read below the first one is left out.
func (s *Files) pack(w *tar.Writer, n *account.Names, dir, prefix string, depth int) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	entries, err := f.Readdirnames(-1)
	_ = f.Close()
	if err != nil {
		return err
	}
	// The same tree gives the same archive, whatever order its file system lists it in.
	slices.Sort(entries)
	for _, name := range entries {
		full := dir + "/" + name
		info, err := describe(n, full, prefix+name)
		if err != nil || s.isDraft(full, name) {
			continue // it was removed meanwhile, or is not there yet
		}
		if err := packOne(w, full, info); err != nil {
			return err
		}
		if info.Type == "d" && depth < maxDepth {
			if err := s.pack(w, n, full, prefix+name+"/", depth+1); err != nil && !errors.Is(err, os.ErrPermission) {
				return err
			}
		}
	}
	return nil
}

// packOne adds one entry; what is neither file, directory nor link is left out.
func packOne(w *tar.Writer, full string, info execution.FileInfo) error {
	// PAX has no limit for lengths of names, sizes and ids. Whole seconds need no record of their own.
	h := &tar.Header{
		Name: info.Path, Mode: int64(info.Mode), Uid: info.UID, Gid: info.GID, Uname: info.Owner, Gname: info.Group,
		ModTime: info.ModTime.Truncate(time.Second), Format: tar.FormatPAX,
	}
	switch info.Type {
	case "d":
		h.Typeflag, h.Name = tar.TypeDir, info.Path+"/"
		return w.WriteHeader(h)
	case "l":
		if info.LinkTarget == "" {
			return nil // not readable for this user
		}
		h.Typeflag, h.Linkname = tar.TypeSymlink, info.LinkTarget
		return w.WriteHeader(h)
	case "-":
	default:
		return nil
	}
	f, st, err := openRegular(full)
	if err != nil {
		return nil // not readable for this user: left out, as ls and tar go on
	}
	defer f.Close()
	// The header's size is that of the file at its opening. What is appended while it is read is left out.
	h.Typeflag, h.Size = tar.TypeReg, st.Size
	if err := w.WriteHeader(h); err != nil {
		return err
	}
	n, err := io.Copy(w, io.LimitReader(f, st.Size))
	if err == nil && n < st.Size { // it shrank meanwhile: the archive must stay whole
		_, err = io.CopyN(w, zeros{}, st.Size-n)
	}
	return err
}

// zeros fills up a file that became shorter after its header was written.
type zeros struct{}

// Read gives zero bytes without end.
func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
