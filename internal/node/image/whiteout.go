package image

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover"
)

const (
	whiteoutPrefix = ".wh."
	opaqueName     = ".wh..wh..opq"
)

// whiteout translates a deletion into what overlay understands: a device 0:0, or a mark on the directory. It is of what
// lower layers have: what this one puts there stays, whether that came before or comes after.
func (u *unpacker) whiteout(at place, base string) error {
	if base == opaqueName {
		return hideLower(at.root, ".")
	}
	name := strings.TrimPrefix(base, whiteoutPrefix)
	if name == "" || name == "." || name == ".." {
		return drover.Errorf(drover.Invalid, "a deletion without a name")
	}
	info, err := at.root.Lstat(name)
	switch {
	case err == nil && info.IsDir():
		return hideLower(at.root, name)
	case err == nil:
		return nil // it hides what is below
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	dir, err := at.root.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	return unix.Mknodat(int(dir.Fd()), name, unix.S_IFCHR, 0)
}

// hideLower marks a directory as one that shows nothing of lower layers.
func hideLower(at *os.Root, name string) error {
	dir, err := at.OpenRoot(name)
	if err != nil {
		return err
	}
	defer dir.Close()
	f, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Fsetxattr(int(f.Fd()), "user.overlay.opaque", []byte("y"), 0); err != nil {
		return fmt.Errorf("marking a directory as replaced: %w", err)
	}
	return nil
}
