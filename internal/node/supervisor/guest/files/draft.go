package files

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/internal/forked"
)

// draft is a file that is being written. It has no name at first, so that nobody finds it, and nothing is left of it
// when we are killed. Not every file system can do that (an overlay only since Linux 6.3): there it has a name from the
// start, which our listings leave out.
type draft struct {
	s     *Files
	f     *os.File
	name  string
	named bool
}

// draftPrefix alone hides nothing: a task's own file may be called so, and isDraft looks for the whole path.
const draftPrefix = ".drover-"

// openDraft makes a draft in the directory that the file is to be in, since a rename cannot cross file systems. Only the owner can read
// it until replace sets its mode.
func (s *Files) openDraft(dir string) (*draft, error) {
	d := &draft{s: s, name: fmt.Sprintf("%s/%s%d-%d", dir, draftPrefix, os.Getpid(), s.drafted.Add(1))}
	fd, err := unix.Open(dir, unix.O_WRONLY|unix.O_TMPFILE|unix.O_CLOEXEC, 0o600)
	if err != nil {
		// The name is noted before the file exists, so that a listing in between leaves it out.
		s.drafts.Store(d.name, true)
		d.named = true
		fd, err = unix.Open(d.name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	}
	if err != nil {
		s.drafts.Delete(d.name)
		return nil, err
	}
	d.f = os.NewFile(uintptr(fd), d.name)
	return d, nil
}

// path leads to the draft, whether it has a name or not.
func (d *draft) path() string { return fmt.Sprintf("/proc/self/fd/%d", d.f.Fd()) }

// place puts a draft that is finished at p, in place of a file that is there. Where there is none, as in a new runner, it is linked there
// at once: a name of its own and a rename after it would cost a quarter of the whole write.
func (d *draft) place(p string) error {
	if !d.named {
		if err := d.link(p); !errors.Is(err, unix.EEXIST) {
			return err
		}
		if err := d.nameIt(); err != nil {
			return err
		}
	}
	return os.Rename(d.name, p)
}

// nameIt gives a draft the name of its own under which it can be moved.
func (d *draft) nameIt() error {
	d.s.drafts.Store(d.name, true)
	d.named = true
	return d.link(d.name)
}

// link gives a draft without a name the one at p, where there may be nothing yet.
func (d *draft) link(p string) error {
	// The way through /proc works without CAP_DAC_READ_SEARCH, which AT_EMPTY_PATH would need (linkat(2)).
	return unix.Linkat(unix.AT_FDCWD, d.path(), unix.AT_FDCWD, p, unix.AT_SYMLINK_FOLLOW)
}

// close ends the writing; moved says that the file has another name now.
func (d *draft) close(moved bool) {
	_ = forked.Close(d.f)
	if d.named && !moved {
		_ = os.Remove(d.name)
	}
	d.s.drafts.Delete(d.name)
}

// isDraft reports whether a file is one that is being written.
func (s *Files) isDraft(full, name string) bool {
	if !strings.HasPrefix(name, draftPrefix) {
		return false
	}
	_, is := s.drafts.Load(full)
	return is
}
