package e2e

import (
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// freePort returns a port that stays free until an agent takes it, and while it is killed and started again. It is below those
// that the kernel gives to connections and to port 0, and below jobs' dynamic ones.
func freePort(t *testing.T) string {
	t.Helper()
	const first, count = 12_000, 8_000
	for {
		port := strconv.Itoa(first + (os.Getpid()*61+int(ports.Add(1)))%count)
		if l, err := net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			require.NoError(t, l.Close())
			return port
		}
	}
}

var ports atomic.Int64 // that were given

// processesOf lists processes that name the folder in their arguments or environment, or whose program is in it.
func processesOf(folder string) (pids []int) {
	procs, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range procs {
		exe, _ := os.Readlink(filepath.Join(p, "exe")) // drover-init says nothing else
		command, _ := os.ReadFile(filepath.Join(p, "cmdline"))
		env, _ := os.ReadFile(filepath.Join(p, "environ"))
		pid, _ := strconv.Atoi(filepath.Base(p))
		if pid != os.Getpid() && strings.Contains(strings.Join([]string{exe, string(command), string(env)}, "\n"), folder) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// unmountBelow ends the mounts in a folder: those of agents that were killed.
func unmountBelow(t *testing.T, folder string) {
	t.Helper()
	table, err := os.ReadFile("/proc/self/mountinfo")
	require.NoError(t, err)
	var points []string
	for line := range strings.Lines(string(table)) {
		if f := strings.Fields(line); len(f) > 4 && strings.HasPrefix(f[4], folder+"/") {
			points = append(points, f[4])
		}
	}
	slices.Reverse(points)
	for _, p := range points {
		assert.NoError(t, syscall.Unmount(p, syscall.MNT_DETACH))
	}
}

// killGroup kills everything that runs below a parent of cgroups, as a machine's loss does.
func killGroup(t *testing.T, parent string) {
	t.Helper()
	killed := 0
	eventually(t, "the end of "+parent, func() (bool, string) {
		left := 0
		for _, dir := range folders(parent) {
			text, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs")) // removed meanwhile
			for _, field := range strings.Fields(string(text)) {
				pid, err := strconv.Atoi(field)
				require.NoError(t, err)
				if syscall.Kill(pid, syscall.SIGKILL) == nil {
					left++
				}
			}
		}
		killed += left
		return left == 0, strconv.Itoa(left)
	})
	require.NotZero(t, killed)
}

// removeGroup removes the empty folders of a parent of cgroups and returns those that should not be there.
func removeGroup(parent string) (left []string) {
	all := folders(parent)
	for i := len(all) - 1; i >= 0; i-- {
		if err := os.Remove(all[i]); err != nil || filepath.Base(all[i]) != parent && filepath.Base(all[i]) != "supervisors" {
			left = append(left, all[i])
		}
	}
	return left
}

// folders lists the cgroups of a parent, outer ones first.
func folders(parent string) (all []string) {
	for _, pattern := range []string{"/sys/fs/cgroup/", "/sys/fs/cgroup/*/"} {
		roots, _ := filepath.Glob(pattern + parent)
		for _, root := range roots {
			if resolved, err := filepath.EvalSymlinks(root); err != nil || resolved != root {
				continue // cpu and cpuacct are one
			}
			_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
				if err == nil && d.IsDir() {
					all = append(all, path)
				}
				return nil
			})
		}
	}
	return all
}
