package cni

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// trusted refuses a file or folder that somebody else than the agent's user and root could change, or put another in the place of:
// what it says is run by the agent. Links are followed to what they lead to, and every folder on the way counts.
func trusted(path string) error {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	if real, err = filepath.Abs(real); err != nil {
		return err
	}
	for at := real; ; at = filepath.Dir(at) {
		var st unix.Stat_t
		if err := unix.Stat(at, &st); err != nil {
			return &os.PathError{Op: "stat", Path: at, Err: err}
		}
		own := st.Uid == 0 || int(st.Uid) == os.Geteuid()
		// In a folder such as /tmp nobody can rename what is another's.
		open := st.Mode&0o022 != 0 && (at == real || st.Mode&unix.S_ISVTX == 0)
		if !own || open {
			return fmt.Errorf("%s (owner %d, mode %o) can be changed by others: give it to root, and take the right to write from others",
				at, st.Uid, st.Mode&0o7777)
		}
		if at == filepath.Dir(at) {
			return nil
		}
	}
}
