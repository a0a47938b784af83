package loopback

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// groupRoot is where control groups are mounted: one tree, or one a controller below it.
const groupRoot = "/sys/fs/cgroup"

// groupOf names the parent of a machine's control groups.
func groupOf(id string) string { return "drover-" + id }

// groups returns the folders of the machine's control groups, the innermost first.
func groups(group string) []string {
	tops, _ := filepath.Glob(filepath.Join(groupRoot, "*", group)) // the pattern is fine
	tops = append(tops, filepath.Join(groupRoot, group))
	var list []string
	for _, top := range tops {
		_ = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error { // what is not there has no groups
			if err == nil && d.IsDir() {
				list = append(list, path)
			}
			return nil
		})
	}
	slices.Reverse(list)
	return list
}

// inGroups returns the processes in the machine's control groups.
func inGroups(group string) (pids []int) {
	for _, path := range groups(group) {
		data, _ := os.ReadFile(filepath.Join(path, "cgroup.procs")) // it was removed meanwhile
		for _, word := range strings.Fields(string(data)) {
			if pid, err := strconv.Atoi(word); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// removeGroups removes the machine's control groups. Errors: one is still in use; what we may not remove holds nothing up.
func removeGroups(group string) (busy error) {
	for _, path := range groups(group) {
		if err := os.Remove(path); errors.Is(err, unix.EBUSY) {
			busy = err
		}
	}
	return busy
}

// unmount detaches everything that is mounted below the folder.
func unmount(folder string) {
	data, _ := os.ReadFile("/proc/self/mountinfo") // without it nothing is detached, and the folder stays
	var points []string
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) > 4 && strings.HasPrefix(f[4], folder+"/") {
			points = append(points, f[4])
		}
	}
	slices.Reverse(points)
	for _, point := range points {
		_ = unix.Unmount(point, unix.MNT_DETACH) // then the folder can't be removed, which is told
	}
}
