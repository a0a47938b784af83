package drivertest

import (
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/drover-project/drover/internal/id"
)

// parentPrefix begins the name of every test's control groups, so that a sweep cannot meet those of a real agent.
const parentPrefix = "drover-test-"

// GroupParent returns a name for the control groups' parent of one test. It tells whose it is, so that
// SweepGroupParents finds what a test left that was killed.
func GroupParent(t testing.TB) string {
	t.Helper()
	return fmt.Sprintf("%s%d-%s", parentPrefix, os.Getpid(), id.Random{}.New()[:8])
}

// SweepGroupParents removes the control groups of tests whose process is no more, and the bridges of theirs. For TestMain.
func SweepGroupParents() {
	SweepGroups(parentPrefix)
	sweepBridges()
}

// SweepGroups removes the control groups named prefix<pid> or prefix<pid>-more whose process is no more.
func SweepGroups(prefix string) {
	// The second pattern is for v1, where each controller has a hierarchy of its own.
	for _, pattern := range []string{"/sys/fs/cgroup/", "/sys/fs/cgroup/*/"} {
		found, _ := filepath.Glob(pattern + prefix + "*")
		for _, dir := range found {
			if Abandoned(dir, prefix) {
				RemoveGroups(dir)
			}
		}
	}
}

// Abandoned reports whether the process is no more whose number is between the prefix and a "-" in the path's last part.
func Abandoned(path, prefix string) bool {
	owner, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(path), prefix), "-")
	pid, err := strconv.Atoi(owner)
	return err == nil && syscall.Kill(pid, 0) == syscall.ESRCH
}

// SweepFolder ends the processes that name an abandoned folder, gives up what is mounted below, and removes it.
func SweepFolder(dir string) {
	for range 3 { // what forks away meanwhile is seen by the next round
		names, _ := filepath.Glob("/proc/[0-9]*")
		for _, p := range names {
			line, _ := os.ReadFile(filepath.Join(p, "cmdline"))
			environ, _ := os.ReadFile(filepath.Join(p, "environ"))
			pid, err := strconv.Atoi(filepath.Base(p))
			if err == nil && pid > 1 && pid != os.Getpid() && strings.Contains(string(line)+string(environ), dir+"/") {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); len(f) > 4 && strings.HasPrefix(f[4]+"/", dir+"/") {
			_ = syscall.Unmount(f[4], syscall.MNT_DETACH)
		}
	}
	_ = os.RemoveAll(dir) // the next run tries again
}

// bridgePrefix is short because the kernel takes at most 15 characters for an interface's name.
const bridgePrefix = "dt"

// Bridge returns a name for the bridge of one test, which tells whose it is.
func Bridge(t testing.TB) string {
	t.Helper()
	return fmt.Sprintf("%s%d-%s", bridgePrefix, os.Getpid(), id.Random{}.New()[:4]) // 15 are the most
}

// Subnet returns a network of 256 addresses for a bridge that no other test of the process has: one of 172.<block>.0.0/14.
// Packages that are tested at once have blocks of their own; 24 is that of agents, 17 and on docker takes, 32 is that of the docker driver.
func Subnet(block uint8) netip.Prefix {
	n := uint32(os.Getpid()) + subnets.Add(1)
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{172, block + uint8(n>>8)%4, uint8(n), 0}), 24) // cut on purpose
}

var subnets atomic.Uint32 // those that were given

// sweepBridges removes the bridges of ended test processes, and the nftables tables of the same names.
func sweepBridges() {
	found, _ := filepath.Glob("/sys/class/net/" + bridgePrefix + "[0-9]*-*")
	for _, p := range found {
		if name := filepath.Base(p); Abandoned(name, bridgePrefix) {
			_ = exec.Command("ip", "link", "delete", name).Run()
			_ = exec.Command("nft", "delete", "table", "inet", name).Run()
		}
	}
}

// RemoveGroups removes a tree of groups from its leaves on, and kills what is in them.
func RemoveGroups(top string) {
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
