package drivertest

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"drover/internal/id"
)

const parentPrefix = "drover-test-"

// GroupParent returns a name for the control groups' parent of one test. It tells whose it is, so that
// SweepGroupParents finds what a test left that was killed.
func GroupParent(t testing.TB) string {
	t.Helper()
	return fmt.Sprintf("%s%d-%s", parentPrefix, os.Getpid(), id.Random{}.New()[:8])
}

// SweepGroupParents removes the control groups of tests whose process is no more. For TestMain.
func SweepGroupParents() {
	for _, pattern := range []string{"/sys/fs/cgroup/", "/sys/fs/cgroup/*/"} {
		found, _ := filepath.Glob(pattern + parentPrefix + "*-*")
		for _, dir := range found {
			owner, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), parentPrefix), "-")
			pid, err := strconv.Atoi(owner)
			if err == nil && syscall.Kill(pid, 0) == syscall.ESRCH {
				removeGroups(dir)
			}
		}
	}
}

// removeGroups removes a tree of groups from its leaves on, and kills what is in them.
func removeGroups(top string) {
	var dirs []string
	_ = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, path)
		}
		return nil
	})
	for i := range dirs {
		dir := dirs[len(dirs)-1-i]
		procs, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		for f := range strings.FieldsSeq(string(procs)) {
			if pid, err := strconv.Atoi(f); err == nil && pid > 1 {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		_ = syscall.Rmdir(dir) // one whose processes are still dying goes with the next run
	}
}
