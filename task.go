package drover

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/drover-project/drover/constraint"
	"github.com/drover-project/drover/service"
	"github.com/drover-project/drover/workload"
)

// Task is one process tree of an allocation, started by a driver.
type Task struct {
	Name            string
	Driver          string
	User            string
	Lifecycle       *TaskLifecycle
	Config          map[string]any // the driver's own
	Constraints     []*constraint.Constraint
	Affinities      []*constraint.Affinity
	Env             map[string]string
	Services        []*service.Service
	Resources       *Resources
	RestartPolicy   *RestartPolicy
	Meta            map[string]string
	KillTimeout     *time.Duration // default 5s
	LogConfig       *LogConfig
	Artifacts       []*TaskArtifact
	Templates       []*Template
	DispatchPayload *DispatchPayloadConfig
	VolumeMounts    []*VolumeMount
	Leader          bool
	ShutdownDelay   time.Duration
	KillSignal      string
	Kind            string
	ScalingPolicies []*ScalingPolicy
	Identity        *workload.Identity
	Identities      []*workload.Identity
	Actions         []*Action

	// What follows is Nomad's and refused: it is read to be seen, and never stored.

	Vault           map[string]any   `json:",omitempty" codec:"-"`
	Consul          map[string]any   `json:",omitempty" codec:"-"`
	CSIPluginConfig map[string]any   `json:",omitempty" codec:"-"`
	Secrets         []map[string]any `json:",omitempty" codec:"-"`
	Schedule        map[string]any   `json:",omitempty" codec:"-"`
}

// Lifecycle hooks.
const (
	HookPrestart  = "prestart"
	HookPoststart = "poststart"
	HookPoststop  = "poststop"
)

// TaskLifecycle makes a task run before, after, or beside the main tasks.
type TaskLifecycle struct {
	Hook    string
	Sidecar bool
}

// LogConfig bounds a task's captured output.
type LogConfig struct {
	MaxFiles      int // default 10
	MaxFileSizeMB int // default 10
	Disabled      bool
	// Enabled is another word for Disabled in what is registered; Canonicalize makes that of it.
	Enabled *bool `json:",omitempty" codec:"-"`
}

// DispatchPayloadConfig names the file that gets a dispatched job's payload.
type DispatchPayloadConfig struct{ File string }

// TaskArtifact is fetched into the task's folder before it starts.
type TaskArtifact struct {
	GetterSource   string
	GetterOptions  map[string]string
	GetterHeaders  map[string]string
	GetterMode     string // any (default), file, dir
	GetterInsecure bool
	RelativeDest   string // default "local/"
	Chown          bool
}

// Template is a file rendered into the task's folder.
type Template struct {
	SourcePath    string
	DestPath      string
	EmbeddedTmpl  string
	ChangeMode    string // restart (default), signal, noop, script
	ChangeScript  *ChangeScript
	ChangeSignal  string
	Once          bool
	Splay         *time.Duration
	Perms         string // default 0644
	Uid           *int
	Gid           *int
	LeftDelim     string
	RightDelim    string
	Envvars       bool
	VaultGrace    *time.Duration
	Wait          *WaitConfig
	ErrMissingKey bool
}

// WaitConfig delays rendering.
type WaitConfig struct{ Min, Max *time.Duration }

// ChangeScript runs when a template changed.
type ChangeScript struct {
	Command          string
	Args             []string
	Timeout          time.Duration
	FailOnError      bool
	RunOnFirstRender bool
}

// Action is a named command of a task.
type Action struct {
	Name    string
	Command string
	Args    []string
}

// Task states: pending → running → dead. The finer states live in node/taskmachine.
const (
	TaskStatePending = "pending"
	TaskStateRunning = "running"
	TaskStateDead    = "dead"
)

// MaxTaskEvents is the length of a task's event ring; the oldest go first.
const MaxTaskEvents = 10

// TaskState is what the node reports of a task.
type TaskState struct {
	State       string
	Failed      bool
	Restarts    uint64
	LastRestart time.Time
	StartedAt   time.Time
	FinishedAt  time.Time
	Events      []*TaskEvent
}

// Task event types.
const (
	TaskReceived           = "Received"
	TaskSetup              = "Task Setup"
	TaskSetupFailure       = "Setup Failure"
	TaskFailedValidation   = "Failed Validation"
	TaskDriverMessage      = "Driver"
	TaskDriverFailure      = "Driver Failure"
	TaskDownloading        = "Downloading Artifacts"
	TaskDownloadFailed     = "Failed Artifact Download"
	TaskStarted            = "Started"
	TaskTerminated         = "Terminated"
	TaskKilling            = "Killing"
	TaskKilled             = "Killed"
	TaskRestarting         = "Restarting"
	TaskNotRestarting      = "Not Restarting"
	TaskSignaling          = "Signaling"
	TaskTemplate           = "Template"
	TaskRestartSignal      = "Restart Signaled"
	TaskLeaderDead         = "Leader Task Dead"
	TaskMainDead           = "Main Tasks Dead"
	TaskSiblingFailed      = "Sibling Task Failed"
	TaskDiskExceeded       = "Disk Resources Exceeded"
	TaskHookFailed         = "Task hook failed"
	TaskRestoreFailed      = "Failed Restoring Task"
	TaskReconnected        = "Reconnected"
	TaskMaxRunDurationOver = "Max Run Duration Exceeded"
	TaskAllocUnhealthy     = "Alloc Unhealthy"
	TaskDiskNotTakenOver   = "Disk Not Taken Over" // ours: the ephemeral disk is empty although it is sticky or migrates
)

// TaskEvent is a line of a task's history.
type TaskEvent struct {
	Type           string
	Time           int64 // unix ns
	DisplayMessage string
	Details        map[string]string
	Message        string

	*TaskEventLegacy // nil = all of it is zero, as in most of the millions of events that control keeps
}

// MarshalJSON shows the fields for older clients also when they are zero, as Nomad does.
func (e *TaskEvent) MarshalJSON() ([]byte, error) {
	type fields TaskEvent // without this method
	all := fields(*e)
	if all.TaskEventLegacy == nil {
		all.TaskEventLegacy = &TaskEventLegacy{}
	}
	return json.Marshal(all)
}

// Cause returns what an event says failed, or "".
func (e *TaskEvent) Cause() string {
	if l := e.TaskEventLegacy; l != nil {
		return cmp.Or(l.DriverError, l.SetupError, l.ValidationError)
	}
	return ""
}

// DetailFinal is the key of Details that is "true" on the event of a failure that another try on the same node would only repeat.
const DetailFinal = "final"

// Final reports whether another try on the same node would only repeat the failure that the event tells of.
func (e *TaskEvent) Final() bool { return e.Details[DetailFinal] == "true" }

// TaskEventLegacy repeats Details for older clients.
type TaskEventLegacy struct {
	FailsTask        bool
	RestartReason    string
	SetupError       string
	DriverError      string
	DriverMessage    string
	ExitCode         int
	Signal           int
	KillReason       string
	KillTimeout      time.Duration
	KillError        string
	StartDelay       int64
	DownloadError    string
	ValidationError  string
	DiskLimit        int64
	DiskSize         int64
	FailedSibling    string
	VaultError       string
	TaskSignalReason string
	TaskSignal       string
	GenericSource    string
}
