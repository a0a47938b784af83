package drover

import (
	"time"

	"github.com/drover-project/drover/constraint"
)

// Job types.
const (
	JobTypeService  = "service"
	JobTypeBatch    = "batch"
	JobTypeSystem   = "system"
	JobTypeSysBatch = "sysbatch"
	JobTypeCore     = "_core" // internal: garbage collection evaluations
)

// Job statuses, derived from its allocations and evaluations by the FSM.
const (
	JobStatusPending = "pending"
	JobStatusRunning = "running"
	JobStatusDead    = "dead"
)

// Names and defaults.
const (
	DefaultNamespace   = "default"
	DefaultRegion      = "global"
	DefaultDatacenter  = "dc1"
	DefaultNodePool    = "default"
	AllNodePool        = "all"
	DefaultPriority    = 50
	DefaultMaxPriority = 100       // highest priority of a job unless a server's job_max_priority says otherwise
	MaxPriority        = 32_766    // highest priority of a job at any server
	MaxGroupCount      = 1_000_000 // allocations a job may have at any server
	DefaultMaxCount    = 50_000    // allocations a job may have unless a server's job_max_count says otherwise
	TrackedJobVersions = 6
)

// Job is what a user registers. Its identity is (Namespace, ID).
type Job struct {
	Region           string
	Namespace        string
	ID               string
	Name             string
	Type             string
	Priority         int
	AllAtOnce        bool
	Datacenters      []string // globs; default ["*"]
	NodePool         string
	Constraints      []*constraint.Constraint
	Affinities       []*constraint.Affinity
	Spreads          []*constraint.Spread
	TaskGroups       []*TaskGroup
	Update           *UpdateStrategy
	Multiregion      *Multiregion
	Periodic         *PeriodicConfig
	ParameterizedJob *ParameterizedJobConfig
	Reschedule       *ReschedulePolicy
	Migrate          *MigrateStrategy
	Meta             map[string]string
	UI               *JobUIConfig

	// Set by the server.

	Stop                     bool
	ParentID                 string
	Dispatched               bool
	DispatchIdempotencyToken string
	Payload                  []byte
	ConsulNamespace          string
	VaultNamespace           string
	NomadTokenID             string
	Status                   string
	StatusDescription        string
	Stable                   bool
	Version                  uint64
	SubmitTime               int64 // unix ns
	CreateIndex              uint64
	ModifyIndex              uint64
	JobModifyIndex           uint64 // moves only when the specification changes
	VersionTag               *JobVersionTag
}

// JobVersionTag names a version so that it is kept.
type JobVersionTag struct {
	Name        string
	Description string
	TaggedTime  int64
}

// JobUIConfig is shown by web pages.
type JobUIConfig struct {
	Description string
	Links       []*JobUILink
}

// JobUILink is a link on a job's page.
type JobUILink struct{ Label, URL string }

// Multiregion is accepted for its fields' sake; more than one region is refused by Validate.
type Multiregion struct {
	Strategy *MultiregionStrategy
	Regions  []*MultiregionRegion
}

// MultiregionStrategy is part of Multiregion.
type MultiregionStrategy struct {
	MaxParallel int
	OnFailure   string
}

// MultiregionRegion is part of Multiregion.
type MultiregionRegion struct {
	Name        string
	Count       int
	Datacenters []string
	NodePool    string
	Meta        map[string]string
}

// PeriodicConfig launches children by cron.
type PeriodicConfig struct {
	Enabled         *bool // default true
	Spec            string
	Specs           []string
	SpecType        string // "cron" or "test"
	ProhibitOverlap bool
	TimeZone        string // default "UTC"
}

// ParameterizedJobConfig makes a job a template for dispatched children.
type ParameterizedJobConfig struct {
	Payload      string // "optional" (default), "required", "forbidden"
	MetaRequired []string
	MetaOptional []string
}

// UpdateStrategy says how a changed service job is rolled out.
type UpdateStrategy struct {
	Stagger          time.Duration  // default 30s
	MaxParallel      *int           // default 1; 0 means all at once and no deployment
	HealthCheck      string         // "checks" (default), "task_states", "manual"
	MinHealthyTime   *time.Duration // default 10s
	HealthyDeadline  time.Duration  // default 5m
	ProgressDeadline *time.Duration // default 10m; 0 means never
	Canary           int
	AutoRevert       bool
	AutoPromote      bool
}

// MigrateStrategy says how a draining node's allocations are moved.
type MigrateStrategy struct {
	MaxParallel     *int // default 1
	HealthCheck     string
	MinHealthyTime  *time.Duration
	HealthyDeadline time.Duration
}

// RestartPolicy modes.
const (
	RestartModeFail  = "fail"
	RestartModeDelay = "delay"
)

// RestartPolicy restarts tasks on the same node.
type RestartPolicy struct {
	Interval        *time.Duration // service 30m, batch 24h
	Attempts        *int           // service 2, batch 3
	Delay           *time.Duration // 15s
	Mode            string         // fail
	RenderTemplates bool
}

// ReschedulePolicy replaces failed allocations.
type ReschedulePolicy struct {
	Attempts      *int           // batch 1, service unlimited
	Interval      *time.Duration // batch 24h
	Delay         *time.Duration // batch 5s, service 30s
	DelayFunction string         // "constant", "exponential", "fibonacci"
	MaxDelay      *time.Duration // service 1h
	Unlimited     *bool
}

// What is kept when a node comes back whose allocations were replaced meanwhile.
const (
	ReconcileBestScore       = "best_score"
	ReconcileKeepOriginal    = "keep_original"
	ReconcileKeepReplacement = "keep_replacement"
	ReconcileLongestRunning  = "longest_running"
)

// DisconnectStrategy says what becomes of allocations whose node is away. Canonicalize makes one of the group's older
// fields (MaxClientDisconnect, StopAfterClientDisconnect, PreventRescheduleOnLost), so that this alone counts.
type DisconnectStrategy struct {
	LostAfter         time.Duration // they are unknown that long before they are lost; 0 = lost at once
	StopOnClientAfter time.Duration // the node stops them itself; 0 = never
	Replace           *bool         // meanwhile; default true
	Reconcile         string        // default best_score
}

// JobSummary counts a job's allocations by group and state.
type JobSummary struct {
	JobID       string
	Namespace   string
	Summary     map[string]TaskGroupSummary
	Children    *JobChildrenSummary
	CreateIndex uint64
	ModifyIndex uint64
}

// JobChildrenSummary counts the children of a periodic or parameterized job.
type JobChildrenSummary struct{ Pending, Running, Dead int64 }

// TaskGroupSummary counts a group's allocations.
type TaskGroupSummary struct {
	Queued, Complete, Failed, Running, Starting, Lost, Unknown int
}

// NamespacedID identifies a job.
type NamespacedID struct {
	Namespace string
	ID        string
}

// Key returns the job's identity.
func (j *Job) Key() NamespacedID { return NamespacedID{j.Namespace, j.ID} }

// Group returns the named group or nil.
func (j *Job) Group(name string) *TaskGroup {
	for _, g := range j.TaskGroups {
		if g.Name == name {
			return g
		}
	}
	return nil
}

// Stopped reports whether nothing of the job should run.
func (j *Job) Stopped() bool { return j == nil || j.Stop }

// Periodical reports whether the job only launches children by cron.
func (j *Job) Periodical() bool { return j.Periodic != nil }

// EndsByItself reports whether the job's work is done once: batch and sysbatch jobs.
func (j *Job) EndsByItself() bool { return j.Type == JobTypeBatch || j.Type == JobTypeSysBatch }

// Parameterized reports whether the job is a template that runs nothing itself.
func (j *Job) Parameterized() bool { return j.ParameterizedJob != nil && !j.Dispatched }
