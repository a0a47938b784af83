package supervisor

import (
	"log/slog"
	"os"
	"time"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/supervisor/spawn"
)

// LaunchConfig says how to start a drover-init.
type LaunchConfig struct {
	Binary   string // from Binary
	ID       string // of this start of the task; marks its processes in their environment (raw processes)
	StateDir string // host folder for the socket and drover-init's own log, made with mode 0700; the guest never sees it
	// Shelf, if not nil, is where StateDir comes from and goes to: it says where the socket lies.
	Shelf *Shelf
	// LogDir is where the main task's output goes, opened by the agent; nil: it is thrown away.
	LogDir *os.File
	Log    LogFiles
	// Base of executions.
	User    User              // default user of executions and files
	WorkDir string            // default working directory, as the guest sees it
	Env     map[string]string // default environment
	Grace   time.Duration     // how long executions without Detach live after the agent was lost; default 30 s
	// Drop are capabilities, by number, as bits, that drover-init has and no program that it starts gets.
	Drop uint64
	// Ambient are capabilities that programs have, too, which run as another user than root. drover-init has them.
	Ambient uint64
	// CgroupNamespace gives each program that drover-init starts a namespace of its own, whose root is the control group
	// that it was born in or joined. drover-init needs CAP_SYS_ADMIN for that, which is to be in Drop.
	CgroupNamespace bool
	// NetNS is a file of the network namespace that drover-init is born in; "" = the agent's.
	NetNS string
	Dir   string // working directory of drover-init itself; default "/"
	// Stage, if not nil, furnishes namespaces for drover-init, before it is executed in them.
	Stage *Stage
	// Forked, if set, is called with drover-init's pid while it waits for its configuration: join cgroups, write maps.
	Forked func(pid int) error
}

// Stage says how drover-init comes into namespaces of its own. It is forked without copying the agent's address space,
// and makes the calls of a script before it is a program.
type Stage struct {
	// Namespaces are clone flags with CLONE_NEWUSER. Those of Unshare are made a moment later, by the child itself.
	Namespaces, Unshare uintptr
	Cgroup              *os.File // the v2 group's folder to be born in; nil: the agent's
	// Hidden runs the program so that guests do not see the path of its file. By that path a process is known to be ours: it is
	// for those that are in a control group.
	Hidden bool
	// Bare: see spawn.StartBare. NetNS must be empty.
	Bare bool
	// Script is called, in place of Forked, with the child, which waits: write its maps. It returns the script, which executes
	// spawn.ProgramFD with env, and the descriptors that go with it.
	Script func(child *spawn.Staged, env []string) (script *spawn.Script, descriptors []int, err error)
}

// LogFiles names the main task's rotated logs: <Task>.stdout.<N>, <Task>.stderr.<N>.
type LogFiles struct {
	Task        string
	MaxFiles    int
	MaxFileSize int64 // bytes
}

// User is a user as numbers in the guest.
type User struct {
	UID, GID uint32
	Groups   []uint32
}

// TaskSpec is the main task.
type TaskSpec struct {
	Argv    []string
	Env     map[string]string // all of it; the supervisor's default environment is not merged
	WorkDir string
	User    string // "" = the default user, else name or uid[:gid] in the guest
	// Rlimits by number (syscall.RLIMIT_*); soft and hard are set alike.
	Rlimits map[int]uint64
	TTY     bool // it has a terminal, and what it writes there is its stdout
	Input   bool // its input stays open, without anybody who writes to it
}

// Options are a Client's dependencies.
type Options struct {
	Clock  clock.Clock
	Log    *slog.Logger
	Groups Groups // nil: executions run without groups of their own
}

const socketName = "s"

// SocketPath is where the supervisor with this StateDir is reached: its socket, or a link to it.
func SocketPath(stateDir string) string { return stateDir + "/" + socketName }
