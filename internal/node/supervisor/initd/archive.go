package initd

import (
	"archive/tar"
	"bufio"
	"errors"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"drover"
	"drover/internal/node/supervisor/proto"
)

const tarBuffer = 64 << 10

// archive sends a directory as tar, with names relative to it.
func (s *Server) archive(t *transfer, d *proto.Decoder) error {
	req := d.FileRequest()
	dir, err := s.absolute(req.Path)
	if err != nil {
		return err
	}
	err = s.as(req.Privileged, func() error {
		b := bufio.NewWriterSize(t, tarBuffer)
		w := tar.NewWriter(b)
		if err := pack(w, newNames(s.readAccounts()), dir, "", 0); err != nil {
			return err
		}
		return errors.Join(w.Close(), b.Flush())
	})
	return fileError(req.Path, err)
}

func pack(w *tar.Writer, n *names, dir, prefix string, depth int) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	entries, err := f.Readdirnames(-1)
	_ = f.Close()
	if err != nil {
		return err
	}
	slices.Sort(entries)
	for _, name := range entries {
		full := dir + "/" + name
		info, err := n.describe(full, prefix+name)
		if err != nil {
			continue // it was removed meanwhile
		}
		if err := packOne(w, full, info); err != nil {
			return err
		}
		if info.Type == "d" && depth < maxDepth {
			if err := pack(w, n, full, prefix+name+"/", depth+1); err != nil && !errors.Is(err, os.ErrPermission) {
				return err
			}
		}
	}
	return nil
}

// packOne adds one entry; what is neither file, directory nor link is left out.
func packOne(w *tar.Writer, full string, info drover.FileInfo) error {
	h := &tar.Header{
		Name: info.Path, Mode: int64(info.Mode), Uid: info.UID, Gid: info.GID, Uname: info.Owner, Gname: info.Group,
		ModTime: info.ModTime.Truncate(time.Second), Format: tar.FormatPAX,
	}
	switch info.Type {
	case "d":
		h.Typeflag, h.Name = tar.TypeDir, info.Path+"/"
		return w.WriteHeader(h)
	case "l":
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

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// extract unpacks a tar below a directory. Devices are left out.
func (s *Server) extract(t *transfer, d *proto.Decoder) error {
	req := d.FileRequest()
	dir, err := s.absolute(req.Path)
	if err != nil {
		return err
	}
	err = s.as(req.Privileged, func() error {
		if err := os.MkdirAll(dir, parentMode); err != nil {
			return err
		}
		r := tar.NewReader(t.in)
		for {
			h, err := r.Next()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return drover.Errorf(drover.Invalid, "reading the archive: %w", err)
			}
			if err := s.unpack(dir, h, r, req.Privileged); err != nil {
				return err
			}
		}
	})
	return fileError(req.Path, err)
}

// unpack makes one entry. Its name cannot lead above dir.
func (s *Server) unpack(dir string, h *tar.Header, r io.Reader, privileged bool) error {
	name := path.Clean("/" + h.Name)
	if name == "/" {
		return nil
	}
	full := dir + name
	o := ids{-1, -1}
	if privileged && os.Geteuid() == 0 {
		o = ids{h.Uid, h.Gid}
	}
	bits := uint32(h.Mode) & modeBits
	switch h.Typeflag {
	case tar.TypeDir:
		return s.mkdir(full, bits, o)
	case tar.TypeReg:
		return s.replace(full, bits, o, r)
	case tar.TypeSymlink:
		return link(full, func() error { return os.Symlink(h.Linkname, full) }, o)
	case tar.TypeLink:
		return link(full, func() error { return os.Link(dir+path.Clean("/"+strings.TrimPrefix(h.Linkname, "./")), full) }, ids{-1, -1})
	default:
		return nil
	}
}

func link(full string, make func() error, o ids) error {
	if err := os.MkdirAll(path.Dir(full), parentMode); err != nil {
		return err
	}
	if err := os.Remove(full); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := make(); err != nil {
		return err
	}
	return unix.Lchown(full, o.uid, o.gid)
}
