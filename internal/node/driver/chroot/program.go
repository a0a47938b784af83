package chroot

import (
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/supervised"
)

// findProgram returns where the task finds the program, as Nomad looks for it: a relative one in local, in the task's folder and in
// its volumes, else on the task's PATH. One that lies in the allocation's folder is made executable: artifacts often are not.
func findProgram(spec *driver.Spec, command string) (string, error) {
	command = supervised.InsidePaths(spec.Dirs).Replace(command)
	own := []struct{ dir, inside string }{
		{spec.Dirs.Local, supervised.LocalPath},
		{spec.Dirs.Shared, supervised.AllocPath},
		{spec.Dirs.Secrets, supervised.SecretsPath},
		{spec.Dirs.Task, "/"},
	}
	if path.IsAbs(command) {
		for _, o := range own {
			if rest, below := strings.CutPrefix(command, strings.TrimSuffix(o.inside, "/")+"/"); below && o.dir != "" {
				_, err := executable(o.dir, rest)
				return command, err
			}
		}
		return command, nil
	}
	for _, o := range []int{0, 3} { // local, the task's folder
		if own[o].dir == "" {
			continue
		}
		if found, err := executable(own[o].dir, command); found || err != nil {
			return path.Join(own[o].inside, command), err
		}
	}
	for _, m := range spec.Mounts {
		if info, err := os.Stat(filepath.Join(m.Source, command)); err == nil && info.Mode().IsRegular() && filepath.IsLocal(command) {
			return path.Join(m.Target, command), nil
		}
	}
	if strings.Contains(command, "/") {
		return path.Join("/", command), nil
	}
	return command, nil
}

// executable makes a file executable if it is there, and reports that. What a guest put into the folder leads nowhere else.
func executable(dir, name string) (bool, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return false, err
	}
	defer root.Close()
	info, err := root.Stat(filepath.Clean(name))
	if err != nil || !info.Mode().IsRegular() {
		return false, nil // it is not there, or leads out: the start tells what it finds
	}
	if mode := info.Mode().Perm(); mode&0o111 != 0o111 {
		return true, root.Chmod(filepath.Clean(name), mode|0o111)
	}
	return true, nil
}
