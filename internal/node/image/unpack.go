package image

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"drover"
)

// Limits bound what an image may take. Zero fields mean the defaults.
type Limits struct {
	Bytes int64 // unpacked, of one layer; default 20 GiB
	Files int64 // of one layer; default 2 million
}

type unpackOptions struct {
	limits Limits
	plain  bool // an archive of files, not a layer: nothing in it is a whiteout, owners do not matter
	chown  bool
	wrote  func(n int64) // told of progress; may be nil
}

// unpack writes a layer's tar stream into an empty directory. Nothing in the stream can reach out of it: os.Root
// refuses what leads out, links in the way are resolved within, devices are left out.
func unpack(r io.Reader, dir string, o unpackOptions) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	u := &unpacker{root: root, opts: o}
	t := tar.NewReader(r)
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return u.finish()
		}
		if err != nil {
			return drover.Errorf(drover.Invalid, "reading the archive: %w", err)
		}
		if err := u.entry(h, t); err != nil {
			return fmt.Errorf("unpacking %q: %w", h.Name, err)
		}
	}
}

type unpacker struct {
	root  *os.Root
	opts  unpackOptions
	bytes int64
	files int64
	dirs  []*tar.Header // their times and modes are set last
}

const (
	whiteoutPrefix = ".wh."
	opaqueName     = ".wh..wh..opq"
)

func (u *unpacker) entry(h *tar.Header, content io.Reader) error {
	if u.files++; u.files > u.opts.limits.Files {
		return drover.Errorf(drover.TooLarge, "more than %d files", u.opts.limits.Files)
	}
	if strings.ContainsRune(h.Name, 0) || strings.ContainsRune(h.Linkname, 0) {
		return drover.Errorf(drover.Invalid, "a name has a zero byte in it")
	}
	name := path.Clean("/" + h.Name)[1:] // ".." ends at the root
	if name == "" {
		return u.top(h)
	}
	parent, base, err := u.parent(name)
	if err != nil {
		return err
	}
	if !u.opts.plain && strings.HasPrefix(base, whiteoutPrefix) {
		return u.whiteout(parent, base)
	}
	return u.make(path.Join(parent, base), h, content)
}

// top takes the mode of the root directory.
func (u *unpacker) top(h *tar.Header) error {
	if h.Typeflag != tar.TypeDir || u.opts.plain {
		return nil
	}
	return u.root.Chmod(".", h.FileInfo().Mode().Perm())
}

// parent returns the directory of a name with its links resolved, and makes it if it is missing.
func (u *unpacker) parent(name string) (dir, base string, err error) {
	dir, base = path.Split(name)
	dir = strings.TrimSuffix(dir, "/")
	if dir == "" {
		return ".", base, nil
	}
	if dir, err = u.resolve(dir); err != nil {
		return "", "", err
	}
	return dir, base, u.root.MkdirAll(dir, 0o755)
}

// resolve follows links as they would be followed with the directory as root.
func (u *unpacker) resolve(name string) (string, error) {
	done, rest := ".", strings.Split(name, "/")
	for hops := 0; len(rest) > 0; {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			done = path.Dir(done)
			continue
		}
		next := path.Join(done, part)
		info, err := u.root.Lstat(next)
		if errors.Is(err, fs.ErrNotExist) || (err == nil && info.Mode()&fs.ModeSymlink == 0) {
			done = next
			continue
		}
		if err != nil {
			return "", err
		}
		if hops++; hops > 40 {
			return "", drover.Errorf(drover.Invalid, "too many links")
		}
		target, err := u.root.Readlink(next)
		if err != nil {
			return "", err
		}
		if strings.HasPrefix(target, "/") {
			done = "."
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return done, nil
}

func (u *unpacker) make(name string, h *tar.Header, content io.Reader) error {
	if err := u.clear(name, h); err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeDir:
		if err := u.root.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		d := *h
		d.Name = name
		u.dirs = append(u.dirs, &d)
		return u.owner(name, h)
	case tar.TypeReg:
		if err := u.file(name, content); err != nil {
			return err
		}
	case tar.TypeSymlink:
		if err := u.root.Symlink(h.Linkname, name); err != nil {
			return err
		}
		return u.owner(name, h)
	case tar.TypeLink:
		parent, base, err := u.parent(path.Clean("/" + h.Linkname)[1:])
		if err != nil {
			return err
		}
		return u.root.Link(path.Join(parent, base), name)
	default: // devices and pipes have no place in a layer: the sandbox has its own /dev
		return nil
	}
	if err := u.owner(name, h); err != nil {
		return err
	}
	if err := u.root.Chmod(name, mode(h)); err != nil {
		return err
	}
	return u.root.Chtimes(name, h.ModTime, h.ModTime)
}

// clear removes what an earlier entry put there, unless both are directories.
func (u *unpacker) clear(name string, h *tar.Header) error {
	info, err := u.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) || (err == nil && info.IsDir() && h.Typeflag == tar.TypeDir) {
		return nil
	}
	if err != nil {
		return err
	}
	return u.root.RemoveAll(name)
}

func (u *unpacker) file(name string, content io.Reader) error {
	f, err := u.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, io.LimitReader(content, u.opts.limits.Bytes-u.bytes+1))
	if u.bytes += n; err == nil && u.bytes > u.opts.limits.Bytes {
		err = drover.Errorf(drover.TooLarge, "more than %d bytes", u.opts.limits.Bytes)
	}
	if u.opts.wrote != nil {
		u.opts.wrote(n)
	}
	return errors.Join(err, f.Close())
}

// owner sets the owner; ids that a sandbox does not have become nobody.
func (u *unpacker) owner(name string, h *tar.Header) error {
	if !u.opts.chown {
		return nil
	}
	return u.root.Lchown(name, inRange(h.Uid), inRange(h.Gid))
}

func inRange(id int) int {
	if id < 0 || id > 65535 {
		return 65534
	}
	return id
}

func mode(h *tar.Header) os.FileMode {
	m := h.FileInfo().Mode()
	return m.Perm() | m&(os.ModeSetuid|os.ModeSetgid|os.ModeSticky)
}

// whiteout translates a deletion into what overlay understands: a device 0:0, or a mark on the directory.
func (u *unpacker) whiteout(parent, base string) error {
	dir, err := u.root.Open(parent)
	if err != nil {
		return err
	}
	defer dir.Close()
	if base == opaqueName {
		err = unix.Fsetxattr(int(dir.Fd()), "user.overlay.opaque", []byte("y"), 0)
		if err != nil {
			return fmt.Errorf("marking a directory as replaced: %w", err)
		}
		return nil
	}
	name := strings.TrimPrefix(base, whiteoutPrefix)
	if name == "" || name == "." || name == ".." {
		return drover.Errorf(drover.Invalid, "a deletion without a name")
	}
	if err := u.root.RemoveAll(path.Join(parent, name)); err != nil {
		return err
	}
	return unix.Mknodat(int(dir.Fd()), name, unix.S_IFCHR, 0)
}

// finish sets what unpacking into the directories would have changed, the innermost first.
func (u *unpacker) finish() error {
	for i := len(u.dirs) - 1; i >= 0; i-- {
		h := u.dirs[i]
		info, err := u.root.Lstat(h.Name)
		if err != nil || !info.IsDir() {
			continue // a later entry took its place
		}
		if err := u.root.Chmod(h.Name, mode(h)); err != nil {
			return err
		}
		if err := u.root.Chtimes(h.Name, h.ModTime, h.ModTime); err != nil {
			return err
		}
	}
	return nil
}
