package files

import (
	"errors"
	"io"
	"os"
	"path"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/node/supervisor/guest/buffer"
	"github.com/drover-project/drover/internal/node/supervisor/wire"
)

// The modes that Poseidon gives, and that of folders which are made on the way.
const (
	defaultFileMode = 0o744
	defaultDirMode  = 0o1777
	parentMode      = 0o755
	modeBits        = 0o7777
)

// Apply makes one change, as the guest's root; data is what a write writes. Errors: Invalid, NotFound, Forbidden,
// Exhausted.
func (s *Files) Apply(c execution.FileChange, data io.Reader) error {
	return fileError(c.Path, s.apply(c, data))
}

// apply checks that a change is exactly one of the three, and makes it. Its errors may be bare errnos, to which Apply gives codes.
func (s *Files) apply(c execution.FileChange, data io.Reader) error {
	if c.Path == "" {
		return drover.Errorf(drover.Invalid, "a change needs a path")
	}
	p, err := s.absolute(c.Path)
	if err != nil {
		return err
	}
	o, err := s.owner(c.Owner)
	if err != nil {
		return err
	}
	switch {
	case c.Delete && !c.Mkdir && !c.Write:
		// The working directory is emptied instead of removed, since later executions start in it.
		if home, err := s.absolute("."); err == nil && p == home && p != "/" && path.Base(c.Path) != "*" {
			return empty(p, true) // itself it stays, and its owner's
		}
		return remove(c.Path, p)
	case c.Mkdir && !c.Write && !c.Delete:
		return mkdir(p, mode(c.Mode, defaultDirMode), o)
	case c.Write && !c.Mkdir && !c.Delete:
		if namesDirectory(c.Path) {
			return drover.Errorf(drover.Invalid, "%q names a directory", c.Path)
		}
		return s.replace(p, mode(c.Mode, defaultFileMode), o, time.Time{}, data)
	default:
		return drover.Errorf(drover.Invalid, "a change is exactly one of delete, mkdir and write: %q", c.Path)
	}
}

// mode returns the mode that was asked for without other bits, or the default for 0.
func mode(m, otherwise uint32) uint32 {
	if m == 0 {
		return otherwise
	}
	return m & modeBits
}

// ids are a file's owner and group.
type ids struct{ uid, gid int }

// owner finds whom a new file belongs to: "" is root, and -1 leaves the one who writes. Errors: Invalid for an unknown user.
func (s *Files) owner(who string) (ids, error) {
	if os.Geteuid() != 0 {
		return ids{-1, -1}, nil // we can only be ourselves
	}
	if who == "" {
		return ids{0, 0}, nil
	}
	a, _, err := s.accounts.Read().Find(who)
	return ids{int(a.UID), int(a.GID)}, err
}

// remove deletes recursively. What is not there is fine. A final "*" stands for all that is not hidden; what something is
// mounted on (a task's secrets) is then emptied and stays.
func remove(asked, p string) error {
	if path.Base(asked) != "*" {
		if p == "/" {
			return drover.Errorf(drover.Invalid, "the root directory cannot be deleted")
		}
		if st, err := os.Lstat(p); err == nil && namesDirectory(asked) && !st.IsDir() {
			return syscall.ENOTDIR
		}
		return os.RemoveAll(p)
	}
	dir, err := emptied(p)
	if err != nil {
		return err
	}
	return empty(dir, false)
}

// empty deletes what is in a directory; hidden things only if all is to go.
func empty(dir string, all bool) error {
	f, err := os.Open(dir)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	entries, err := f.Readdirnames(-1)
	_ = f.Close()
	if err != nil {
		return err
	}
	for _, name := range entries {
		if !all && strings.HasPrefix(name, ".") {
			continue
		}
		// EBUSY is a mount point: what is in it is gone, and it stays.
		if err := os.RemoveAll(dir + "/" + name); err != nil && !errors.Is(err, unix.EBUSY) {
			return err
		}
	}
	return nil
}

// emptied is the directory that a final "*" stands in. In an image that names none, "./*" would be all of the system.
func emptied(p string) (dir string, err error) {
	if dir = path.Dir(p); dir == "/" {
		return "", drover.Errorf(drover.Invalid, "the root directory is not emptied: give the image a working directory")
	}
	return dir, nil
}

// mkdir makes a directory, and those on the way. One that is there gets the mode and the owner.
func mkdir(p string, mode uint32, o ids) error {
	if err := os.MkdirAll(path.Dir(p), parentMode); err != nil {
		return err
	}
	if err := unix.Mkdir(p, parentMode); err != nil && err != unix.EEXIST {
		return err
	}
	// Owner and mode are set through a descriptor: a path could lead elsewhere by then.
	fd, err := unix.Open(p, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Fchown(fd, o.uid, o.gid); err != nil {
		return err
	}
	return unix.Fchmod(fd, mode)
}

// replace writes a new file and moves it into the old one's place: nobody sees half a file. A time of zero is now.
func (s *Files) replace(p string, mode uint32, o ids, at time.Time, data io.Reader) (err error) {
	if st, err := os.Lstat(p); err == nil && st.IsDir() {
		return syscall.EISDIR
	}
	if err := os.MkdirAll(path.Dir(p), parentMode); err != nil {
		return err
	}
	d, err := s.openDraft(path.Dir(p))
	if err != nil {
		return err
	}
	defer func() { d.close(err == nil) }()
	if err := fill(d.f, data); err != nil {
		return err
	}
	// The owner comes first, because a chown clears setuid and setgid bits.
	if err := d.f.Chown(o.uid, o.gid); err != nil {
		return err
	}
	if err := unix.Fchmod(int(d.f.Fd()), mode); err != nil {
		return err
	}
	// The time is set after the content, whose writing would change it.
	if err := setTimeAt(d.path(), at, 0); err != nil {
		return err
	}
	return d.place(p)
}

// setTime sets when a file, not what it links to, was changed last; a time of zero leaves it.
func setTime(p string, at time.Time) error { return setTimeAt(p, at, unix.AT_SYMLINK_NOFOLLOW) }

func setTimeAt(p string, at time.Time, flags int) error {
	if at.IsZero() {
		return nil
	}
	ts, err := unix.TimeToTimespec(at)
	if err != nil {
		return drover.Errorf(drover.Invalid, "the time %v: %w", at, err)
	}
	return unix.UtimesNanoAt(unix.AT_FDCWD, p, []unix.Timespec{ts, ts}, flags)
}

// fill copies through a pooled buffer. The struct wrappers hide ReadFrom and WriteTo, with which io would allocate one of its own.
func fill(f *os.File, data io.Reader) error {
	b := buffer.Get()
	defer buffer.Put(b)
	_, err := io.CopyBuffer(struct{ io.Writer }{f}, struct{ io.Reader }{data}, b[:wire.DataSize])
	return err
}
