package exchange

import (
	"context"
	"io"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/network"
	"github.com/drover-project/drover/service"
	"github.com/drover-project/drover/usage"
	"github.com/drover-project/drover/volume"
)

// The exchange between a node and control. It is level-triggered: the node says what it observes, control says what
// it wants; a lost message is repaired by the next. node/agent uses a Controller, control/assignment is one,
// internal/link carries both directions over connectrpc for nodes in other processes.

// Controller is control as a node sees it. Errors: Unauthorized (wrong node secret), NotFound (register first),
// NotLeader, Unavailable.
type Controller interface {
	// Register announces the node (again after every change of its fingerprint). Idempotent.
	Register(ctx context.Context, node *drover.Node) (Registration, error)
	// Heartbeat says the node is alive. Missing it for TTL plus grace makes the node down.
	Heartbeat(ctx context.Context, nodeID string) (Registration, error)
	// Pull blocks until what control wants of the node differs from what it has seen, or ctx ends, or maxWait passed (then it
	// answers with the same index). Who has seen nothing is answered at once. Errors: Unavailable, too, from a server whose state
	// is older than what the node has seen.
	Pull(ctx context.Context, nodeID string, seen Seen, maxWait time.Duration) (Assignment, error)
	// Push reports what the node observes, several allocations at once; nil error means durable.
	Push(ctx context.Context, nodeID string, updates []AllocUpdate) error
}

// Registration answers Register and Heartbeat.
type Registration struct {
	TTL   time.Duration // send the next heartbeat within this
	Index uint64        // of the leader's state
	Age   string        // see Seen
	// Servers are those that the node can speak with; none from a server that is alone.
	Servers []Server
}

// Server is one of the servers that a node can speak with.
type Server struct {
	ID      string
	Address string // host:port at which nodes dial it
}

// Assignment is all that control wants of a node: every allocation of the node that is not yet known to have ended,
// those to be stopped too (DesiredStatus says so). An allocation that the node has and that is not listed is to be
// stopped and its folder removed when the node collects garbage.
type Assignment struct {
	Index  uint64 // newest change of what is wanted of the node
	State  uint64 // index of the whole state
	Age    string // see Seen
	Allocs []*drover.Allocation
	Meta   map[string]*string // what people set of the node's meta at runtime (Node.DynamicMeta)
	// Volumes are those that the node has or is to have, and those that it is to delete: their state says so. One that is not listed is
	// mounted no more; the node leaves its folder alone.
	Volumes []*volume.HostVolume
	// SignedBy are, by namespace, public keys in PEM of which one must have signed the images of its tasks. One that is not listed asks
	// for no signatures.
	SignedBy map[string][]string
	// Signers says that SignedBy is all that control knows: older servers say nothing of it, and the node keeps what it was told before.
	Signers bool
	// Same are the ids of further allocations: those are wanted as in the assignment that Seen.Answer names.
	Same []string
	// Answer names this assignment; "" = it has no name.
	Answer string
	// History is the same for states whose allocations can be compared by their ModifyIndex, and for no others; nil: nobody knows. It
	// stays in its process.
	History any `codec:"-"`
}

// Seen is what a node has seen of control's state. It obeys no older one.
type Seen struct {
	Index uint64 // of the assignment that it follows; 0 = of none
	State uint64 // newest index of the whole state
	Age   string // within which indexes can be compared: cluster.State's; "" = that of a server that is alone
	// Answer is that of the assignment that was carried out last. "" has all allocations sent, also those that did not change since.
	Answer string
}

// AllocUpdate is what a node observes of an allocation.
type AllocUpdate struct {
	ID                string
	ClientStatus      string
	ClientDescription string
	TaskStates        map[string]*drover.TaskState
	DeploymentStatus  *drover.AllocDeploymentStatus
	DeploymentID      string // that DeploymentStatus is about; "" = it is not known
	NetworkStatus     *network.Status
	Time              int64 // unix ns, the node's clock
	// Order is larger than that of all that the node reported before, also before it restarted: servers may still be about to pass
	// an older report on. 0: the node is of an older program, and its reports count as they come.
	Order uint64
	// FailingServices are those of which a check does not pass now: OWNER/NAME/PORT, in order.
	FailingServices []string
}

// Workloads is a node as control, the execution service and the HTTP faces see it: what can be asked about running
// things. node/agent implements it; internal/link carries it through the connection that the node dialled.
// task "" means the only (or the leader, or the first) task.
type Workloads interface {
	StartExecution(ctx context.Context, allocID, task string, spec execution.Spec) (execution.Session, error)
	AttachExecution(ctx context.Context, allocID, task, executionID string, from execution.Offsets) (execution.Session, error)
	Executions(ctx context.Context, allocID string) ([]execution.Execution, error)
	Files(allocID, task string) execution.Files
	AllocFolder
	AllocControl
	NodeIdentity
}

// AllocFolder reads an allocation's folder on the node (logs too). Paths are relative to it and cannot leave it.
type AllocFolder interface {
	ListFolder(ctx context.Context, allocID, path string) ([]drover.AllocFileInfo, error)
	StatFolder(ctx context.Context, allocID, path string) (drover.AllocFileInfo, error)
	ReadFolder(ctx context.Context, allocID, path string, offset, limit int64) (io.ReadCloser, error)
	// SnapshotFolder streams what another node takes over of an allocation that has ended, as a tar: alloc/data and the tasks' local folders.
	SnapshotFolder(ctx context.Context, allocID string) (io.ReadCloser, error)
	// Logs streams a task's captured output ("stdout" or "stderr") over all rotated files.
	Logs(ctx context.Context, r LogRequest) (LogReader, error)
}

// LogRequest asks for logs; Origin "start" or "end" with an offset from it.
type LogRequest struct {
	AllocID string
	Task    string
	Type    string
	Origin  string
	Offset  int64
	Follow  bool
	Path    string // instead of Task and Type: any file of the folder, for fs/stream
	File    string // of a chunk: Offset is in this rotated file, or in the next that is still there. Origin is "start"
	Since   int64  // only what was written since then, in Unix milliseconds; 0: whenever. There is no Origin, Offset or File
	Search  string // only the lines of a log that have this text, whatever the case of its letters
}

// LogChunk is a piece of a log file. With Search it is a line that has the text, or without Data how far was searched.
type LogChunk struct {
	File   string // e.g. "alloc/logs/web.stdout.0"
	Offset int64  // in File, behind Data
	Data   []byte // of a search: a line without its end, at most LongestMatch bytes of it around the text
	Event  string // "file deleted", "file truncated"
	Found  bool   // Data is what was searched for; a search begins with a chunk of it without Data
	At     int64  // of what was found: when it was written, in Unix milliseconds, or shortly before; 0: that is not known
}

const (
	// LongestMatch is the most that is told of a line that was found, in bytes.
	LongestMatch = 4 << 10
	// LongestSearch is the most that a text has which is searched for, in bytes.
	LongestSearch = 256
)

// LogReader yields chunks until io.EOF; with Follow it waits for more until its context ends.
type LogReader interface {
	Next(ctx context.Context) (LogChunk, error)
	Close() error
}

// AllocControl acts on a running allocation.
type AllocControl interface {
	RestartTask(ctx context.Context, allocID, task string, all bool) error
	SignalTask(ctx context.Context, allocID, task, signal string) error
	AllocStats(ctx context.Context, allocID, task string) (*usage.AllocResourceUsage, error)
	// AllocChecks returns what the checks of its services found last, by their ids.
	AllocChecks(ctx context.Context, allocID string) (map[string]service.CheckStatus, error)
	NodeStats(ctx context.Context) (*usage.HostStats, error)
	// CollectGarbage removes the folders of ended allocations: one, or all with allocID "".
	CollectGarbage(ctx context.Context, allocID string) error
}
