package hook

import (
	"archive/tar"
	"archive/zip"
	"compress/bzip2"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"drover"
)

const maxEntries = 200_000

// archiveKind finds how a file is packed: by the option, else by its name. "" = not at all.
func archiveKind(name, option string) string {
	switch option {
	case "false":
		return ""
	case "", "true":
	default:
		return option
	}
	for _, k := range []string{"tar.gz", "tgz", "tar.bz2", "tbz2", "tar", "zip"} {
		if strings.HasSuffix(name, "."+k) {
			return k
		}
	}
	return ""
}

// unpack writes an archive's files below rel. Entries that lead out are an error, links that do are made but never
// followed; devices are left out. Packed bombs end at the limit.
func unpack(root *os.Root, f *os.File, rel, kind string, limit int64) error {
	if err := root.MkdirAll(rel, 0o777); err != nil {
		return err
	}
	u := &unpacker{root: root, base: rel, left: limit, entries: maxEntries}
	var r io.Reader = f
	switch kind {
	case "zip":
		return u.zip(f)
	case "tar.gz", "tgz":
		z, err := gzip.NewReader(f)
		if err != nil {
			return drover.Errorf(drover.Invalid, "unpacking: %w", err)
		}
		r = z
	case "tar.bz2", "tbz2":
		r = bzip2.NewReader(f)
	case "tar":
	default:
		return drover.Errorf(drover.NotImplemented, "archives of kind %q cannot be unpacked", kind)
	}
	return u.tar(r)
}

type unpacker struct {
	root    *os.Root
	base    string
	left    int64
	entries int
}

func (u *unpacker) path(name string) (string, error) {
	name = filepath.Clean(strings.TrimLeft(name, "/"))
	if !filepath.IsLocal(name) {
		return "", drover.Errorf(drover.Invalid, "unpacking: entry %q leads out of the archive", name)
	}
	if u.entries--; u.entries < 0 {
		return "", drover.Errorf(drover.TooLarge, "unpacking: more than %d entries", maxEntries)
	}
	return filepath.Join(u.base, name), nil
}

func (u *unpacker) tar(r io.Reader) error {
	t := tar.NewReader(r)
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return drover.Errorf(drover.Invalid, "unpacking: %w", err)
		}
		p, err := u.path(h.Name)
		if err != nil {
			return err
		}
		switch h.Typeflag {
		case tar.TypeDir:
			err = u.root.MkdirAll(p, 0o777)
		case tar.TypeReg:
			err = u.file(p, t, os.FileMode(h.Mode)&os.ModePerm)
		case tar.TypeSymlink:
			err = u.link(p, h.Linkname)
		case tar.TypeLink:
			err = u.hardLink(p, h.Linkname)
		}
		if err != nil {
			return err
		}
	}
}

func (u *unpacker) zip(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	z, err := zip.NewReader(f, info.Size())
	if err != nil {
		return drover.Errorf(drover.Invalid, "unpacking: %w", err)
	}
	for _, e := range z.File {
		if err := u.zipEntry(e); err != nil {
			return err
		}
	}
	return nil
}

func (u *unpacker) zipEntry(e *zip.File) error {
	p, err := u.path(e.Name)
	if err != nil {
		return err
	}
	if e.FileInfo().IsDir() {
		return u.root.MkdirAll(p, 0o777)
	}
	r, err := e.Open()
	if err != nil {
		return drover.Errorf(drover.Invalid, "unpacking: %w", err)
	}
	defer r.Close()
	switch mode := e.Mode(); {
	case mode&os.ModeSymlink != 0:
		target, err := io.ReadAll(io.LimitReader(r, 4096))
		if err != nil {
			return drover.Errorf(drover.Invalid, "unpacking: %w", err)
		}
		return u.link(p, string(target))
	case mode.IsRegular():
		return u.file(p, r, mode.Perm())
	}
	return nil
}

func (u *unpacker) file(p string, r io.Reader, perm os.FileMode) error {
	if err := makeParents(u.root, p); err != nil {
		return err
	}
	_ = u.root.Remove(p)
	f, err := u.root.OpenFile(p, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm|0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, io.LimitReader(r, u.left+1))
	if u.left -= n; err == nil && u.left < 0 {
		err = drover.Errorf(drover.TooLarge, "unpacking: more bytes than allowed")
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}

func (u *unpacker) link(p, target string) error {
	if err := makeParents(u.root, p); err != nil {
		return err
	}
	_ = u.root.Remove(p)
	return u.root.Symlink(target, p)
}

func (u *unpacker) hardLink(p, target string) error {
	old, err := u.path(target)
	if err != nil {
		return err
	}
	if err := makeParents(u.root, p); err != nil {
		return err
	}
	_ = u.root.Remove(p)
	return u.root.Link(old, p)
}
