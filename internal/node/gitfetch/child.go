package gitfetch

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// title is a child's argv[0] until it is git; bridge is that of what ssh starts to reach the tunnel.
const (
	title  = "drover-git"
	bridge = "drover-connect"
)

// inside is where a child with mounts of its own has its folder: a directory that every machine has.
const inside = "/tmp"

// memory bounds the addresses of a git process, in bytes. It holds the largest delta and its base.
const memory = 3 << 30

// wayVariable names the tunnel to bridge.
const wayVariable = "DROVER_TUNNEL"

// able says that Child was called: executed again, this program would be a child, and not a second agent.
var able atomic.Bool // a fact about the process

// Child becomes git and does not return, if the process was started as a child; else it only notes that this program can be
// one. A main function, or a TestMain, calls it before everything else.
func Child() {
	able.Store(true)
	var err error
	switch filepath.Base(os.Args[0]) {
	default:
		return
	case title:
		err = become(os.Args[1:])
	case bridge:
		if err = errSocks; len(os.Args) == 3 {
			err = connect(os.Getenv(wayVariable), os.Args[1], os.Args[2], os.Stdin, os.Stdout)
		}
	}
	if err != nil {
		_, _ = fmt.Fprintf(os.Stderr, "fatal: %v\n", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// order says what a child is to be. It holds no secret: others may read a process's arguments.
type order struct {
	Git      string
	Args     []string
	Folder   string // the only one that it writes to
	User     int    // who it is then; 0: who the agent is, in its namespaces
	Port     uint16 // of the tunnel; 0: it has no network
	Net      int    // descriptor of its network namespace; 0: that of the agent, or an empty one
	Bridge   string // this program's file, for ssh; "" = there is no ssh
	FileSize uint64 // of the largest file that it may write
	Read     []string
}

// readable is what git, curl and ssh read beside programs and libraries.
var readable = []string{ // constant
	"/etc/ssl", "/etc/pki", "/etc/ca-certificates", "/etc/crypto-policies", "/etc/gnutls", "/etc/ld.so.cache", "/etc/ld.so.conf",
	"/etc/ld.so.conf.d", "/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/localtime", "/dev/urandom", "/dev/random", "/dev/zero",
}

var programs = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64"} // constant

// become makes this process git.
func become(args []string) error {
	runtime.LockOSThread() // what is given up is this thread's, and this thread executes git
	var o order
	if len(args) != 1 {
		return errors.New("wrong arguments")
	}
	if err := json.Unmarshal([]byte(args[0]), &o); err != nil {
		return err
	}
	// Best effort: where this cannot be written the kernel only chooses less well.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	if err := o.apart(); err != nil {
		return err
	}
	if err := o.bound(); err != nil {
		return err
	}
	if err := o.seal(); err != nil {
		return err
	}
	return fmt.Errorf("executing git: %w", unix.Exec(o.Git, append([]string{"git"}, o.Args...), os.Environ()))
}

// apart moves the process into its namespaces, and to its folder.
func (o *order) apart() error {
	if o.Net != 0 {
		if err := unix.Setns(o.Net, unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("joining the network: %w", err)
		}
		_ = unix.Close(o.Net)
	}
	if o.User == 0 {
		return os.Chdir(o.Folder)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	// ssh wants to know who it is. The folder is mounted last: others may be below where it is then.
	binds := map[string]string{filepath.Join(o.Folder, "passwd"): "/etc/passwd"}
	if o.Bridge != "" {
		binds[o.Bridge] = filepath.Join(o.Folder, bridge)
	}
	for from, to := range binds {
		if err := unix.Mount(from, to, "", unix.MS_BIND, ""); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("mounting %s: %w", to, err)
		}
	}
	if err := unix.Mount(o.Folder, inside, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("mounting the folder: %w", err)
	}
	if err := unix.Mount("", inside, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_NOSUID|unix.MS_NODEV, ""); err != nil {
		return fmt.Errorf("mounting the folder: %w", err)
	}
	o.Folder = inside
	return os.Chdir(inside)
}

func (o *order) bound() error {
	for resource, most := range map[int]uint64{
		unix.RLIMIT_AS: memory, unix.RLIMIT_FSIZE: o.FileSize, unix.RLIMIT_CORE: 0, unix.RLIMIT_NOFILE: 256,
	} {
		var own unix.Rlimit
		if err := unix.Prlimit(0, resource, nil, &own); err != nil {
			return fmt.Errorf("asking for a limit: %w", err)
		}
		most = min(most, own.Max)
		if err := syscall.Setrlimit(resource, &syscall.Rlimit{Cur: most, Max: most}); err != nil { // so Go does not reset open files
			return fmt.Errorf("setting a limit: %w", err)
		}
	}
	return nil
}

// seal gives up rights, files and ports.
func (o *order) seal() error {
	l, err := newLand()
	if err != nil {
		return err
	}
	allow := map[string]uint64{o.Folder: landWrite, "/dev/null": landRead | unix.LANDLOCK_ACCESS_FS_WRITE_FILE}
	for _, p := range append(programs, filepath.Dir(o.Git)) {
		allow[p] = landRun
	}
	for _, p := range append(readable, o.Read...) {
		allow[p] = landRun
	}
	if o.Bridge != "" {
		allow[filepath.Join(o.Folder, bridge)] = landRun
	}
	for path, access := range allow {
		if err := l.path(path, access); err != nil {
			return err
		}
	}
	if o.Port != 0 {
		if err := l.port(o.Port); err != nil {
			return err
		}
	}
	if o.User != 0 {
		if err := errors.Join(syscall.Setgroups(nil), syscall.Setresgid(o.User, o.User, o.User),
			syscall.Setresuid(o.User, o.User, o.User)); err != nil {
			return fmt.Errorf("becoming another user: %w", err)
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("setting no_new_privs: %w", err)
	}
	return l.enforce()
}
