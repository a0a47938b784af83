package image

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/forked"
)

// Limits bound what an image may take. Zero fields mean the defaults.
type Limits struct {
	Bytes int64 // unpacked; default 20 GiB
	Files int64 // of one layer; default 2 million
}

// less is what is left when some bytes are unpacked.
func (l Limits) less(n int64) Limits {
	l.Bytes = max(l.Bytes-n, 0)
	return l
}

// stream bounds the archive itself: its headers, and what is left out of it.
func (l Limits) stream() int64 {
	const perFile, padding = 2048, 1 << 20
	return l.Bytes + l.Files*perFile + padding
}

// unpackOptions are what unpack needs beside the stream. chown is only possible as root; without it all files are the
// agent's.
type unpackOptions struct {
	limits Limits
	chown  bool
	wrote  func(n int64) // told of progress; may be nil
}

// unpack writes a layer's tar stream into an empty directory. Nothing in the stream can reach out of it: all is done
// below directories that were opened one in the other, links in the way are resolved within, devices are left out.
func unpack(r io.Reader, dir string, o unpackOptions) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	u := &unpacker{root: root, opts: o, dirs: map[string]dirMeta{}, left: map[string]bool{}, buf: make([]byte, copySize)}
	defer u.forget()
	t := tar.NewReader(r)
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return u.finish()
		}
		if ours := (*drover.Error)(nil); errors.As(err, &ours) {
			return err
		}
		if err != nil {
			return drover.Errorf(drover.Invalid, "reading the archive: %w", err)
		}
		if err := u.entry(h, t); err != nil {
			return fmt.Errorf("unpacking %q: %w", h.Name, err)
		}
	}
}

// copySize is the buffer for file contents, in bytes, allocated once a layer.
const copySize = 256 << 10

// unpacker is one layer that is being unpacked. It remembers by name only directories and left out entries, so that
// memory does not grow with the number of files.
type unpacker struct {
	root  *os.Root
	opts  unpackOptions
	bytes int64
	files int64
	names int64  // bytes of the names that are kept
	buf   []byte // for contents

	dirs map[string]dirMeta // set last
	left map[string]bool    // left out

	last place // of the entry before
}

// dirMeta is what unpacking into a directory would change.
type dirMeta struct {
	mode os.FileMode
	time time.Time
}

// maxNames bounds the memory that names take, in bytes.
const maxNames = 64 << 20

// keep counts a name that is remembered.
func (u *unpacker) keep(name string) error {
	const entry = 100
	if u.names += int64(len(name)) + entry; u.names > maxNames {
		return drover.Errorf(drover.TooLarge, "more directories and deletions than are remembered")
	}
	return nil
}

// entry unpacks one member of the archive. Names are taken relative to the layer's root, whatever slashes or ".." they
// have. Errors: TooLarge, Invalid, and those of the file system.
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
	at, base, err := u.parent(name)
	if err != nil {
		return err
	}
	if strings.HasPrefix(base, whiteoutPrefix) {
		return u.whiteout(at, base)
	}
	return u.make(at, base, h, content)
}

// top takes the mode of the root directory.
func (u *unpacker) top(h *tar.Header) error {
	if h.Typeflag != tar.TypeDir {
		return nil
	}
	return u.root.Chmod(".", h.FileInfo().Mode().Perm())
}

// make creates the entry at its place. The owner is set before the mode, because changing the owner clears set-user-id
// bits.
func (u *unpacker) make(at place, base string, h *tar.Header, content io.Reader) error {
	hides, err := u.clear(at, base, h)
	if err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeDir:
		return u.mkdir(at, base, h, hides)
	case tar.TypeReg, tar.TypeGNUSparse: // holes are written as zeros
		if err := u.file(at.root, base, content); err != nil {
			return err
		}
	case tar.TypeSymlink:
		if err := at.root.Symlink(h.Linkname, base); err != nil {
			return err
		}
		return u.owner(at.root, base, h)
	case tar.TypeLink:
		return u.link(at, base, h.Linkname)
	default: // devices and pipes have no place in a layer: the sandbox has its own /dev
		u.left[path.Join(at.path, base)] = true
		return u.keep(at.path + base)
	}
	if err := u.owner(at.root, base, h); err != nil {
		return err
	}
	if err := at.root.Chmod(base, mode(h)); err != nil {
		return err
	}
	return at.root.Chtimes(base, h.ModTime, h.ModTime)
}

// mkdir makes a directory that only the agent may write to, and remembers its real mode and time for finish. With hides
// it is marked opaque, as this layer had deleted what lower layers have there.
func (u *unpacker) mkdir(at place, base string, h *tar.Header, hides bool) error {
	if err := at.root.Mkdir(base, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if hides {
		if err := hideLower(at.root, base); err != nil {
			return err
		}
	}
	name := path.Join(at.path, base)
	u.dirs[name] = dirMeta{mode(h), h.ModTime}
	return errors.Join(u.keep(name), u.owner(at.root, base, h))
}

// link makes a hard link to what came before in this layer.
func (u *unpacker) link(to place, base, target string) error {
	target = path.Clean("/" + target)[1:]
	source, err := u.open(path.Dir(target))
	if err != nil {
		return err
	}
	defer source.close()
	from := path.Base(target)
	if u.left[path.Join(source.path, from)] {
		return nil
	}
	a, err := source.root.Open(".")
	if err != nil {
		return err
	}
	defer a.Close()
	b, err := to.root.Open(".")
	if err != nil {
		return err
	}
	defer b.Close()
	if err := unix.Linkat(int(a.Fd()), from, int(b.Fd()), base, 0); err != nil {
		return fmt.Errorf("linking to %q: %w", target, err)
	}
	return nil
}

// clear removes what an earlier entry put there, unless both are directories. It reports whether that was a deletion of
// what lower layers have.
func (u *unpacker) clear(at place, base string, h *tar.Header) (hides bool, err error) {
	info, err := at.root.Lstat(base)
	if errors.Is(err, fs.ErrNotExist) || (err == nil && info.IsDir() && h.Typeflag == tar.TypeDir) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return info.Mode()&fs.ModeCharDevice != 0, at.root.RemoveAll(base)
}

// file writes a new file and counts its bytes against the limit. It reads one byte more than is left, to tell an exact
// fit from an excess. Sizes in the header are not trusted.
func (u *unpacker) file(at *os.Root, base string, content io.Reader) error {
	f, err := at.OpenFile(base, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	plain := struct{ io.Writer }{f} // else the file's own ReadFrom takes no buffer
	n, err := io.CopyBuffer(plain, io.LimitReader(content, u.opts.limits.Bytes-u.bytes+1), u.buf)
	if u.bytes += n; err == nil && u.bytes > u.opts.limits.Bytes {
		err = drover.Errorf(drover.TooLarge, "more than %d bytes", u.opts.limits.Bytes)
	}
	if u.opts.wrote != nil {
		u.opts.wrote(n)
	}
	return errors.Join(err, forked.Close(f))
}

// owner sets the owner; ids that a sandbox does not have become nobody.
func (u *unpacker) owner(at *os.Root, base string, h *tar.Header) error {
	if !u.opts.chown {
		return nil
	}
	return at.Lchown(base, inRange(h.Uid), inRange(h.Gid))
}

// inRange maps ids outside of a sandbox's 65,536 to nobody (65534), as those cannot be shifted into the machine's range.
func inRange(id int) int {
	if id < 0 || id > 65535 {
		return 65534
	}
	return id
}

// mode is what chmod is to set: the permissions and the three special bits, without the file type.
func mode(h *tar.Header) os.FileMode {
	m := h.FileInfo().Mode()
	return m.Perm() | m&(os.ModeSetuid|os.ModeSetgid|os.ModeSticky)
}

// finish sets what unpacking into the directories would have changed, the innermost first.
func (u *unpacker) finish() error {
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(u.dirs))) {
		info, err := u.root.Lstat(name)
		if err != nil || !info.IsDir() {
			continue // a later entry took its place
		}
		d := u.dirs[name]
		if err := u.root.Chmod(name, d.mode); err != nil {
			return err
		}
		if err := u.root.Chtimes(name, d.time, d.time); err != nil {
			return err
		}
	}
	return nil
}
