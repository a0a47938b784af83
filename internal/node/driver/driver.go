package driver

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/network"
	"github.com/drover-project/drover/usage"
)

// ErrGone is returned by Attach when the task ended in a way that left no exit behind, and by a Handle's methods
// once the task was destroyed.
var ErrGone = errors.New("task is gone")

// ErrNotSupported is returned by optional methods that this driver, or this task, does not have.
var ErrNotSupported = errors.New("not supported by this driver")

// StartError is returned by Start. A recoverable one is retried under the task's restart policy.
type StartError struct {
	Recoverable bool
	Err         error
}

// Error returns the reason.
func (e *StartError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *StartError) Unwrap() error { return e.Err }

// OwnUserDenied is the attribute by which the driver raw_exec says that no task runs as the agent's own user: then none may read by the
// agent what only that user may.
const OwnUserDenied = "driver.raw_exec.own_user_denied"

// Driver starts tasks of one kind.
type Driver interface {
	Name() string // as in a job's task: "raw_exec", "sandbox", "docker", "mock_driver"
	Fingerprint(ctx context.Context) drover.DriverInfo
	// Validate checks Task.Config: unknown keys, wrong types; all problems at once. No I/O.
	Validate(task *drover.Task) error
	// Start starts the task. ctx bounds the starting, not the task. Errors: *StartError.
	Start(ctx context.Context, spec Spec) (Handle, error)
	// Attach finds a task again after an agent restart. Errors: ErrGone.
	Attach(ctx context.Context, state State) (Handle, error)
}

// Spec is a task to start, with everything interpolated.
type Spec struct {
	AllocID  string
	TaskName string
	ID       string // unique per start: "<alloc>/<task>/<8 hex>"
	Job      string // for labels
	Group    string
	Config   map[string]any // Task.Config, interpolated
	Env      map[string]string
	User     string
	Dirs     Dirs
	// Resources limits the task.
	CPUMHz      int64
	Cores       []uint16
	MemoryMB    int64
	MemoryMaxMB int64
	DiskMB      int64
	Networks    []*network.Resource
	Ports       []network.PortMapping
	// NetNS, if set, is the namespace that the task shares with the others of its allocation; Ports are mapped to it
	// already. A task whose Config names a network of its own has none.
	NetNS  *NetNS
	Mounts []Mount
	// Devices are those that the task was given. Only drivers that are a Devicer get any.
	Devices Devices
	// Stdout and Stderr are files of the log collector, opened for append by the supervisor through LogSink.
	Log LogConfig
	// Pool: this is a warm runner. The driver prepares everything and starts only the supervisor (plus Config's
	// command, if there is one); commands arrive as executions.
	Pool bool
	// Rehearse: nobody else needs the machine just now, so a warm runner may be made warmer than one that has only started.
	Rehearse bool
	// SignedBy are public keys in PEM of which one must have signed the task's image; none: it need not be signed. A driver that runs
	// images refuses others, and runs what it looked at.
	SignedBy  []string
	Namespace string // of the job, which asks for that
	// Tell, if set, takes what people should know while the task starts ("Downloading image x"): a task event each.
	Tell func(message string)
}

// Say calls Tell if it is set.
func (s *Spec) Say(message string) {
	if s.Tell != nil {
		s.Tell(message)
	}
}

// NetNS is a network namespace that tasks of an allocation share.
type NetNS struct {
	Path      string // a file of it, which setns takes
	Container string // the docker container that holds it; "" = none
	// Status is its place in the network, with the name servers that this has, if it names any.
	Status *network.Status
	Note   string // what people should know of a new one; "" = nothing
}

// Dirs are the allocation's folders on the host.
type Dirs struct {
	Alloc   string // <data>/alloc/<id>
	Shared  string // <Alloc>/alloc, NOMAD_ALLOC_DIR
	Task    string // <Alloc>/<task>
	Local   string // <Task>/local, NOMAD_TASK_DIR
	Secrets string // <Task>/secrets, NOMAD_SECRETS_DIR
	State   string // <data>/supervisor/<id>.<task>: sockets and the supervisor's files; never visible to the task. The driver makes it
}

// Mount binds a host path into the task.
type Mount struct {
	Source   string
	Target   string
	ReadOnly bool
}

// Devices is what a task has of its node's devices, and what it needs to use them.
type Devices struct {
	Nodes []DeviceNode
	// Libraries are read-only files of the machine that programs need to use the devices, and LibraryPath is the folder inside that
	// they are in. A root that is the machine's has them anyway.
	Libraries   []Mount
	LibraryPath string
	// Runtime is docker's runtime that does all this by Env, where a daemon has it; "" = there is none.
	Runtime string
	// Env is in the task's environment already.
	Env map[string]string
}

// DeviceNode is a device file.
type DeviceNode struct {
	Source string // on the host
	Target string // in the task
	Shared bool   // of all devices of the kind: other tasks have it, too
}

// Devicer is a driver that gives tasks the devices of its node.
type Devicer interface {
	Driver
	// GivesDevices returns why it cannot just now; "" if it can.
	GivesDevices() string
}

// Restorer is a Driver that keeps things of tasks outside of their folders, as a daemon's containers.
type Restorer interface {
	Driver
	// Restored is called once, when every task of an earlier agent was attached or given up: what belongs to none of
	// them, as that agent was killed while it made it, is removed.
	Restored(ctx context.Context)
}

// LogConfig tells the supervisor where a task's output goes: it writes rotated files
// <Dir>/<Task>.<stdout|stderr>.<N> itself, so nothing is lost while the agent restarts and no pipe stands between.
type LogConfig struct {
	Dir         string
	MaxFiles    int
	MaxFileSize int64 // bytes
	Disabled    bool
}

// State is what the agent stores before it reports a task as running, to Attach after a restart.
type State struct {
	Driver    string
	ID        string
	AllocID   string
	TaskName  string
	StartedAt time.Time
	Data      json.RawMessage // the driver's own; empty for a start that the agent's end interrupted
	// StateDir is the start's Dirs.State, where a driver may find the task of an interrupted start.
	StateDir string `json:",omitempty"`
}

// Exit is how a task ended.
type Exit struct {
	Code      int
	Signal    int
	OOMKilled bool
	Err       error // the driver could not learn the exit; Code is then not 0
	Receipt   *execution.Receipt
}

// Handle is a started task.
type Handle interface {
	State() State
	// Wait returns when the task ended. It may be called by several goroutines. ctx ends only the waiting.
	Wait(ctx context.Context) (Exit, error)
	Signal(ctx context.Context, name string) error
	// Stop asks with the signal ("" = the driver's default), and kills the whole tree after the timeout.
	Stop(ctx context.Context, signal string, timeout time.Duration) error
	// Destroy kills what is left and frees everything; idempotent. Afterwards no process, mount, cgroup, file of
	// the task outside the allocation folder remains.
	Destroy(ctx context.Context) error
	// Network is the address in the task's own network; nil if it has none.
	Network() *network.Status
}

// Execer runs commands in a task. Handles of supervised tasks have it.
type Execer interface {
	StartExecution(ctx context.Context, spec execution.Spec) (execution.Session, error)
	AttachExecution(ctx context.Context, id string, from execution.Offsets) (execution.Session, error)
	Executions(ctx context.Context) ([]execution.Execution, error)
}

// Filer gives access to the files that the task sees. Handles of supervised tasks have it.
type Filer interface{ Files() execution.Files }

// Noticer tells what a person should know of a running task that is no failure of it: output that a full disk did not
// take. The function is called by the goroutine that is in Handle.Wait; set it before.
type Noticer interface {
	OnNotice(notice func(text string))
}

// Meter samples usage. Errors: ErrNotSupported, ErrGone.
type Meter interface {
	Usage(ctx context.Context) (*usage.TaskResourceUsage, error)
}
