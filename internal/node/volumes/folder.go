package volumes

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/id"
)

// folder is how a folder is to be: whose it is (-1 = the agent's), and what who may do there.
type folder struct {
	uid, gid int
	mode     fs.FileMode
}

// mostID bounds user and group ids: the largest 32-bit one means "none".
const mostID = 1<<32 - 2

// parse reads the parameters of the plugin mkdir. Errors: Invalid, with the parameter.
func parse(parameters map[string]string) (folder, error) {
	f := folder{uid: -1, gid: -1, mode: 0o700}
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		value := parameters[name]
		switch name {
		case "uid", "gid":
			n, err := strconv.ParseUint(value, 10, 32)
			if err != nil || n > mostID {
				return f, drover.Errorf(drover.Invalid, "parameters.%s: must be a number from 0 to %d, got %q", name, mostID, value)
			}
			if name == "uid" {
				f.uid = int(n)
			} else {
				f.gid = int(n)
			}
		case "mode":
			n, err := strconv.ParseUint(value, 8, 32)
			if err != nil || n > 0o1777 {
				return f, drover.Errorf(drover.Invalid, "parameters.mode: must be an octal number up to 1777, such as 0750, got %q", value)
			}
			f.mode = fs.FileMode(n & 0o777)
			if n&0o1000 != 0 {
				f.mode |= fs.ModeSticky
			}
		default:
			return f, drover.Errorf(drover.Invalid, "parameters.%s: mkdir knows uid, gid and mode", name)
		}
	}
	return f, nil
}

// mkdir makes the folder, below dir. One that is there stays as it is: the request came twice.
func mkdir(dir, path string, parameters map[string]string) error {
	f, err := parse(parameters)
	if err != nil {
		return err
	}
	if err := closed(dir); err != nil {
		return fmt.Errorf("making the folder of host volumes: %w", err)
	}
	switch err := os.Mkdir(path, 0o700); {
	case errors.Is(err, fs.ErrExist):
		return isFolder(path)
	case err != nil:
		return fmt.Errorf("making the volume: %w", err)
	}
	err = os.Chown(path, f.uid, f.gid)
	if err == nil {
		err = os.Chmod(path, f.mode) // after the change of hands, and whatever the umask
	}
	if err != nil {
		return fmt.Errorf("making the volume: %w", errors.Join(err, os.Remove(path)))
	}
	return nil
}

// closed makes the folder of all volumes, and lets no other user of the machine in: what a container's root leaves in a volume with a
// set-user-id bit would make its rights theirs. One that was open to them is closed if only volumes are in it. Errors: Conflict if there
// is something else.
func closed(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil || info.Mode()&0o007 == 0 {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !id.Valid(e.Name()) {
			return drover.Errorf(drover.Conflict, "%s is open to other users of the machine, and has also %q: give volumes a folder of "+
				"their own (client.host_volumes_dir), or close this one (chmod o= %[1]s)", dir, e.Name())
		}
	}
	return os.Chmod(dir, info.Mode()&^0o007)
}

// remove deletes the folder with all that is in it; it may be gone.
func remove(path string) error {
	if err := os.RemoveAll(path); err != nil {
		return fmt.Errorf("deleting the volume: %w", err)
	}
	return nil
}

func byID(a, b *known) int { return cmp.Compare(a.ID, b.ID) }
