package examine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/node/cgroup"
	"github.com/drover-project/drover/internal/node/driver/sandbox"
)

// Machine looks at this machine without changing it; dir is where data would be kept.
func Machine(ctx context.Context, dir string) []cluster.Part {
	return append(own(ctx, dir), checkDocker(ctx), checkRunsc())
}

// own is what an agent needs of the machine, whatever else is installed.
func own(ctx context.Context, dir string) []cluster.Part {
	return []cluster.Part{
		checkKernel(), checkRights(os.Geteuid() == 0), checkGroups(cgroup.Survey), checkNamespaces(ctx), checkOverlay(sandbox.Overlay),
		checkSeccomp(), checkDisk(dir),
	}
}

// text returns a small file of /proc without its line end; "" if it cannot be read, as where the kernel lacks the
// feature.
func text(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// checkKernel asks for mount_setattr, by which sandboxes change the mounts of a whole tree. A wrong file descriptor
// changes nothing: a kernel that has the call refuses it with another error than ENOSYS.
func checkKernel() cluster.Part {
	f := cluster.Part{Check: "kernel", State: cluster.OK, Says: "Linux " + text("/proc/sys/kernel/osrelease"), Needed: true}
	if err := unix.MountSetattr(-1, "", unix.AT_EMPTY_PATH, &unix.MountAttr{}); errors.Is(err, unix.ENOSYS) {
		f.State, f.Says = cluster.Missing, f.Says+" is older than 5.12 (no mount_setattr)"
	}
	return f
}

// checkRights says what running without root costs.
func checkRights(root bool) cluster.Part {
	if root {
		return cluster.Part{Check: "rights", State: cluster.OK, Says: "root"}
	}
	return cluster.Part{
		Check: "rights", State: cluster.Weak,
		Says: "not root: sandboxes have one user id, and limits only where this user's control group is delegated",
	}
}

// checkGroups reports the control groups by an agent's own probe. Missing ones make limits weaker, but sandboxes run.
func checkGroups(look func() (has string, weaker []string)) cluster.Part {
	f := cluster.Part{Check: "control groups", State: cluster.OK}
	has, weaker := look()
	f.Says = strings.Join(append([]string{has}, weaker...), "; ")
	if len(weaker) > 0 {
		f.State = cluster.Weak
	}
	return f
}

// checkNamespaces makes all namespaces of a sandbox for a program that ends at once: settings alone do not tell, as a
// container or a security module may forbid them. If it fails, known settings that forbid them are named.
func checkNamespaces(ctx context.Context) cluster.Part {
	f := cluster.Part{Check: "namespaces", State: cluster.OK, Says: "user, mount, pid, network, ipc, uts", Needed: true}
	program, err := exec.LookPath("true")
	if err != nil {
		f.State, f.Says = cluster.Weak, "not tried: there is no program 'true'"
		return f
	}
	cmd := exec.CommandContext(ctx, program)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET |
			syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
	}
	if err := cmd.Run(); err != nil {
		f.State, f.Says = cluster.Missing, fmt.Sprintf("cannot be made (%v)", err)
		for path, bad := range map[string]string{
			"/proc/sys/user/max_user_namespaces": "0", "/proc/sys/kernel/unprivileged_userns_clone": "0",
			"/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1",
		} {
			if text(path) == bad {
				f.Says += "; " + path + " is " + bad
			}
		}
	}
	return f
}

// checkOverlay says whether images can be layered.
func checkOverlay(there func() bool) cluster.Part {
	if there() {
		return cluster.Part{Check: "overlay", State: cluster.OK, Says: "the file system that layers images", Needed: true}
	}
	return cluster.Part{
		Check: "overlay", State: cluster.Missing, Says: "the kernel has no overlay file system: modprobe overlay", Needed: true,
	}
}

// checkSeccomp looks at the list of actions, which only a kernel with seccomp filters has.
func checkSeccomp() cluster.Part {
	if text("/proc/sys/kernel/seccomp/actions_avail") != "" {
		return cluster.Part{Check: "seccomp", State: cluster.OK, Says: "system calls can be filtered", Needed: true}
	}
	return cluster.Part{Check: "seccomp", State: cluster.Missing, Says: "the kernel has no seccomp filters", Needed: true}
}

// checkDocker connects to the daemon's socket, that of DOCKER_HOST if it is a local one. A daemon elsewhere is not
// tried.
func checkDocker(ctx context.Context) cluster.Part {
	path := "/var/run/docker.sock"
	if host, ok := strings.CutPrefix(os.Getenv("DOCKER_HOST"), "unix://"); ok {
		path = host
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	if err == nil {
		_ = conn.Close() // nothing was sent
	}
	return dockerPart(path, err)
}

// dockerPart says what connecting to the daemon's socket came to; err is nil if it was accepted. No socket means
// no daemon, which only jobs with the docker driver miss.
func dockerPart(path string, err error) cluster.Part {
	f := cluster.Part{Check: "docker", State: cluster.Missing}
	switch {
	case errors.Is(err, os.ErrPermission):
		f.Says = "no permission for " + path + ": a daemon may run there; run this as root, or join the socket's group " +
			"(sudo usermod -aG docker $USER, then log in again)"
	case err != nil:
		f.Says = "no daemon answers at " + path + ": only jobs with the docker driver need it"
	default:
		f.State, f.Says = cluster.OK, "a daemon answers at "+path
	}
	return f
}

// checkRunsc looks for gVisor's program. Whether docker knows it as a runtime is tried with the hostile programs.
func checkRunsc() cluster.Part {
	path, err := exec.LookPath("runsc")
	if err != nil {
		return cluster.Part{Check: "gVisor", State: cluster.Missing, Says: "no runsc in PATH: only docker tasks with that runtime need it"}
	}
	return cluster.Part{Check: "gVisor", State: cluster.OK, Says: path}
}

// littleDisk, 1 GiB, is what the layers of one ordinary image with some logs want at least.
const littleDisk = 1 << 30

const checkOfDisk = "disk"

// checkDisk says how much an unprivileged user may still write at dir; f_bavail leaves out what is kept for root.
func checkDisk(dir string) cluster.Part {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return cluster.Part{Check: checkOfDisk, State: cluster.Weak, Says: fmt.Sprintf("%s: %v", dir, err)}
	}
	free := s.Bavail * uint64(s.Bsize) // never negative
	f := cluster.Part{Check: checkOfDisk, State: cluster.OK, Says: fmt.Sprintf("%.1f GiB free at %s", float64(free)/(1<<30), dir)}
	if free < littleDisk {
		f.State = cluster.Weak
	}
	return f
}
