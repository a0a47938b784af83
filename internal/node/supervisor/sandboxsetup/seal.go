package sandboxsetup

import (
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/internal/node/supervisor/spawn"
	"github.com/drover-project/drover/internal/sysmon"
)

// knobs sets what belongs to the new namespaces.
func (b *builder) knobs() {
	if name := b.c.Hostname; name != "" {
		b.Call("setting the host name", unix.SYS_SETHOSTNAME, b.Bytes([]byte(name)), spawn.Num(len(name)))
	}
	if b.c.Loopback {
		b.loopbackUp()
	}
	b.Call(
		"calming drover-init",
		unix.SYS_PRCTL,
		spawn.Num(unix.PR_SET_TIMERSLACK),
		spawn.Num(sysmon.Slack),
		spawn.Num(0),
		spawn.Num(0),
		spawn.Num(0),
	)
	if b.c.NoUserNamespaces {
		const what = "forbidding nested user namespaces"
		limit, flags := b.Str("/proc/sys/user/max_user_namespaces"), spawn.Num(unix.O_WRONLY|unix.O_CLOEXEC)
		open := b.Call(what, unix.SYS_OPENAT, spawn.Num(atCwd), limit, flags, spawn.Num(0)).
			Forgive(unix.ENOENT)
		fd := open.Result()
		b.Call(what, unix.SYS_WRITE, fd.Arg(), b.Bytes([]byte("0")), spawn.Num(1))
		b.close(fd)
		open.ThenSkip()
	}
}

// interfaceFlags is struct ifreq with flags in it.
type interfaceFlags struct {
	name  [unix.IFNAMSIZ]byte
	flags uint16
	_     [22]byte
}

// loopbackUp brings up lo, which a new network namespace has but leaves down.
func (b *builder) loopbackUp() {
	const what = "bringing lo up"
	request := &interfaceFlags{name: [unix.IFNAMSIZ]byte{'l', 'o'}, flags: unix.IFF_UP | unix.IFF_RUNNING}
	s := b.Call(what, unix.SYS_SOCKET, spawn.Num(unix.AF_INET), spawn.Num(unix.SOCK_DGRAM|unix.SOCK_CLOEXEC), spawn.Num(0)).Result()
	b.Call(what, unix.SYS_IOCTL, s.Arg(), spawn.Num(unix.SIOCSIFFLAGS), spawn.Pointer(b.Script, request))
	b.close(s)
}

// lastCapability is the highest number that this kernel knows.
var lastCapability = sync.OnceValue(func() int { // the kernel's
	n := 0
	for n < 63 {
		if _, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, uintptr(n+1), 0, 0, 0); err != nil {
			break
		}
		n++
	}
	return n
})

// seal gives up what the supervisor and everything after it must not have.
func (b *builder) seal() {
	for i := range b.c.Rlimits {
		r := &b.c.Rlimits[i]
		limit := &unix.Rlimit{Cur: r.Soft, Max: r.Hard}
		b.Call("setting a resource limit", unix.SYS_PRLIMIT64, spawn.Num(0), spawn.Num(r.Resource), spawn.Pointer(b.Script, limit), spawn.Num(0))
	}
	// Inheritable and ambient capabilities would pass by the bounding set. The others are what a new user namespace gives.
	b.Call(
		"clearing ambient capabilities",
		unix.SYS_PRCTL,
		spawn.Num(unix.PR_CAP_AMBIENT),
		spawn.Num(unix.PR_CAP_AMBIENT_CLEAR_ALL),
		spawn.Num(0),
		spawn.Num(0),
		spawn.Num(0),
	)
	head := &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	all := unix.CapUserData{Effective: ^uint32(0), Permitted: ^uint32(0)}
	b.Call(
		"clearing inheritable capabilities",
		unix.SYS_CAPSET,
		spawn.Pointer(b.Script, head),
		spawn.Pointer(b.Script, &[2]unix.CapUserData{all, all}),
	)
	for n := range lastCapability() + 1 {
		if b.c.KeepCaps&(1<<n) == 0 {
			b.Call("dropping a capability", unix.SYS_PRCTL, spawn.Num(unix.PR_CAPBSET_DROP), spawn.Num(n), spawn.Num(0), spawn.Num(0), spawn.Num(0))
		}
	}
	b.Call("setting no_new_privs", unix.SYS_PRCTL, spawn.Num(unix.PR_SET_NO_NEW_PRIVS), spawn.Num(1), spawn.Num(0), spawn.Num(0), spawn.Num(0))
	if len(b.c.Seccomp) >= filterSize {
		program := &sockFprog{length: uint16(len(b.c.Seccomp) / filterSize), filter: &b.c.Seccomp[0]}
		b.Call(
			"installing the seccomp filter",
			unix.SYS_SECCOMP,
			spawn.Num(unix.SECCOMP_SET_MODE_FILTER),
			spawn.Num(0),
			spawn.Pointer(b.Script, program),
		)
	}
}

const filterSize = 8 // bytes of an instruction

// sockFprog is struct sock_fprog.
type sockFprog struct {
	length uint16
	filter *byte
}

// execute replaces the child by the program. By descriptor, because no path leads to it any more.
func (b *builder) execute(env []string) error {
	argv, err := syscall.SlicePtrFromStrings([]string{"drover-init"})
	if err != nil {
		return err
	}
	envp, err := syscall.SlicePtrFromStrings(env)
	if err != nil {
		return err
	}
	b.Call("executing the supervisor", unix.SYS_EXECVEAT, spawn.Num(spawn.ProgramFD), b.Str(""), spawn.Pointer(b.Script, &argv[0]),
		spawn.Pointer(b.Script, &envp[0]), spawn.Num(unix.AT_EMPTY_PATH))
	return nil
}
