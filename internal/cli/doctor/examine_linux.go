package doctor

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

	"github.com/drover-project/drover/internal/cli/term"
)

// examine looks at this machine without changing it; dir is where data would be kept. Programs that it starts end at
// once.
func examine(ctx context.Context, probes Probes, dir string) []finding {
	root := os.Geteuid() == 0
	return []finding{
		checkKernel(), checkRights(root), checkGroups(probes.Groups), checkNamespaces(ctx), checkOverlay(probes.Overlay), checkSeccomp(),
		checkDocker(ctx), checkRunsc(), checkDisk(dir),
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
func checkKernel() finding {
	f := finding{Check: "kernel", State: findingOK, Says: "Linux " + text("/proc/sys/kernel/osrelease"), Needed: true}
	if err := unix.MountSetattr(-1, "", unix.AT_EMPTY_PATH, &unix.MountAttr{}); errors.Is(err, unix.ENOSYS) {
		f.State, f.Says = findingMissing, f.Says+" is older than 5.12 (no mount_setattr)"
	}
	return f
}

// checkRights says what running without root costs.
func checkRights(root bool) finding {
	if root {
		return finding{Check: "rights", State: findingOK, Says: "root"}
	}
	return finding{Check: "rights", State: findingWeak, Says: "not root: sandboxes have one user id, and limits only where this user's " +
		"control group is delegated"}
}

// checkGroups reports the control groups by an agent's own probe. Missing ones make limits weaker, but sandboxes run.
func checkGroups(look func() (has string, weaker []string)) finding {
	f := finding{Check: "control groups", State: findingOK}
	if look == nil {
		f.State, f.Says = findingWeak, "not looked at"
		return f
	}
	has, weaker := look()
	f.Says = strings.Join(append([]string{has}, weaker...), "; ")
	if len(weaker) > 0 {
		f.State = findingWeak
	}
	return f
}

// checkNamespaces makes all namespaces of a sandbox for a program that ends at once: settings alone do not tell, as a
// container or a security module may forbid them. If it fails, known settings that forbid them are named.
func checkNamespaces(ctx context.Context) finding {
	f := finding{Check: "namespaces", State: findingOK, Says: "user, mount, pid, network, ipc, uts", Needed: true}
	program, err := exec.LookPath("true")
	if err != nil {
		f.State, f.Says = findingWeak, "not tried: there is no program 'true'"
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
		f.State, f.Says = findingMissing, fmt.Sprintf("cannot be made (%v)", err)
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

// checkOverlay says whether images can be layered. Without a probe it is taken for granted.
func checkOverlay(there func() bool) finding {
	if there == nil || there() {
		return finding{Check: "overlay", State: findingOK, Says: "the file system that layers images", Needed: true}
	}
	return finding{Check: "overlay", State: findingMissing, Says: "the kernel has no overlay file system: modprobe overlay", Needed: true}
}

// checkSeccomp looks at the list of actions, which only a kernel with seccomp filters has.
func checkSeccomp() finding {
	if text("/proc/sys/kernel/seccomp/actions_avail") != "" {
		return finding{Check: "seccomp", State: findingOK, Says: "system calls can be filtered", Needed: true}
	}
	return finding{Check: "seccomp", State: findingMissing, Says: "the kernel has no seccomp filters", Needed: true}
}

// checkDocker connects to the daemon's socket, that of DOCKER_HOST if it is a local one. A daemon elsewhere is not
// tried.
func checkDocker(ctx context.Context) finding {
	path := "/var/run/docker.sock"
	if host, ok := strings.CutPrefix(os.Getenv("DOCKER_HOST"), "unix://"); ok {
		path = host
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	if err == nil {
		_ = conn.Close() // nothing was sent
	}
	return dockerFinding(path, err)
}

// dockerFinding says what connecting to the daemon's socket came to; err is nil if it was accepted. No socket means
// no daemon, which only jobs with the docker driver miss.
func dockerFinding(path string, err error) finding {
	if errors.Is(err, os.ErrPermission) {
		return finding{Check: "docker", State: findingMissing, Says: "no permission for " + path + ": a daemon may run there; run this as " +
			"root, or join the " +
			"socket's group (sudo usermod -aG docker $USER, then log in again)"}
	}
	if err != nil {
		return finding{Check: "docker", State: findingMissing, Says: "no daemon answers at " + path + ": only jobs with the docker driver " +
			"need it"}
	}
	return finding{Check: "docker", State: findingOK, Says: "a daemon answers at " + path}
}

// checkRunsc looks for gVisor's program. Whether docker knows it as a runtime is tried with the hostile programs.
func checkRunsc() finding {
	path, err := exec.LookPath("runsc")
	if err != nil {
		return finding{Check: "gVisor", State: findingMissing, Says: "no runsc in PATH: only docker tasks with that runtime need it"}
	}
	return finding{Check: "gVisor", State: findingOK, Says: path}
}

// littleDisk, 1 GiB, is what the layers of one ordinary image with some logs want at least.
const littleDisk = 1 << 30

// checkDisk says how much an unprivileged user may still write at dir; f_bavail leaves out what is kept for root.
func checkDisk(dir string) finding {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return finding{Check: "disk", State: findingWeak, Says: fmt.Sprintf("%s: %v", dir, err)}
	}
	free := s.Bavail * uint64(s.Bsize) // never negative
	f := finding{Check: "disk", State: findingOK, Says: fmt.Sprintf("%s free at %s", term.Bytes(float64(free)), dir)}
	if free < littleDisk {
		f.State = findingWeak
	}
	return f
}
