package program

import (
	"os"
	"path/filepath"
	"syscall"

	"github.com/drover-project/drover"
)

// Trusted refuses a file or folder that somebody else than root and the agent's user can change, or put another in the place of.
// What it says, or is, runs with the agent's rights. It returns where it is, links being followed; every folder on the way
// counts, and so does the one that names a link. Errors: Forbidden, and those of the file system.
func Trusted(path string) (real string, err error) {
	if path, err = filepath.Abs(path); err != nil {
		return "", err
	}
	if real, err = filepath.EvalSymlinks(path); err != nil {
		return "", err
	}
	if err := guarded(real); err != nil {
		return "", err
	}
	if real == path {
		return real, nil
	}
	return real, guarded(filepath.Dir(path))
}

// guarded refuses what others can change, or can put something else in the place of.
func guarded(path string) error {
	for at := path; ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		if err != nil {
			return err
		}
		owner := info.Sys().(*syscall.Stat_t).Uid
		if owner != 0 && owner != uint32(os.Geteuid()) {
			return drover.Errorf(drover.Forbidden, "%s belongs to user %d: it must be root's or the agent's", at, owner)
		}
		// In a folder with the sticky bit nobody replaces what is another user's.
		if info.Mode()&0o022 != 0 && (at == path || info.Mode()&os.ModeSticky == 0) {
			return drover.Errorf(drover.Forbidden, "%s can be written by other users: chmod go-w", at)
		}
		if at == filepath.Dir(at) {
			return nil
		}
	}
}
