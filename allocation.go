package drover

import (
	"strconv"
	"strings"
	"time"

	"github.com/drover-project/drover/network"
)

// Desired statuses of an allocation: control writes them.
const (
	AllocDesiredRun   = "run"
	AllocDesiredStop  = "stop"
	AllocDesiredEvict = "evict"
)

// Client statuses of an allocation: the node writes them (and control, for lost and unknown).
const (
	AllocClientPending  = "pending"
	AllocClientRunning  = "running"
	AllocClientComplete = "complete"
	AllocClientFailed   = "failed"
	AllocClientLost     = "lost"
	AllocClientUnknown  = "unknown"
)

// Allocation is a group placed on a node.
type Allocation struct {
	ID                    string
	Namespace             string
	EvalID                string
	Name                  string // job.group[index]
	NodeID                string
	NodeName              string
	JobID                 string
	Job                   *Job // the version placed; shared, never changed
	TaskGroup             string
	AllocatedResources    *AllocatedResources
	Metrics               *AllocationMetric
	DesiredStatus         string
	DesiredDescription    string
	DesiredTransition     DesiredTransition
	ClientStatus          string
	ClientDescription     string
	TaskStates            map[string]*TaskState
	DeploymentID          string
	DeploymentStatus      *AllocDeploymentStatus
	FollowupEvalID        string
	PreviousAllocation    string
	NextAllocation        string
	RescheduleTracker     *RescheduleTracker
	NetworkStatus         *network.Status
	PreemptedAllocations  []string
	PreemptedByAllocation string
	CreateIndex           uint64
	ModifyIndex           uint64
	AllocModifyIndex      uint64 // moves only when control changes it, so a node's own updates do not echo
	CreateTime            int64  // unix ns
	ModifyTime            int64  // unix ns

	// UnknownSince is when control last lost sight of it (unix ns); 0 unless its client status is unknown. Ours.
	UnknownSince int64 `json:",omitempty"`

	// Claim is set once the allocation, a warm runner, was handed out. Ours, not Nomad's.
	Claim *Claim `json:",omitempty"`
	// Lease is the incarnation of the server that may hand the runner out, or keeps it for its claimer; 0 = the only server. Ours.
	Lease uint64 `json:",omitempty"`
	// Reported is the order of the newest report of its node that was taken; older ones come too late. Ours.
	Reported uint64 `json:"-"`
	// FailingServices are those of its services with a check that does not pass now, as its node says: OWNER/NAME/PORT, in order. Ours.
	FailingServices []string `json:",omitempty"`
}

// Claim records that a warm runner was handed out. It is never taken back: a claimed runner only ends.
type Claim struct {
	RunnerID    string // the id that the claimer uses
	ClaimedAt   int64  // unix ns
	IdleTimeout time.Duration
	Labels      map[string]string
	Env         map[string]string
	Limits      *Limits // of its executions; nil = the environment's
}

// AllocationName is the name of one of a group's allocations: job.group[index].
func AllocationName(jobID, group string, index int) string {
	name := make([]byte, 0, len(jobID)+len(group)+10)
	name = append(append(append(append(name, jobID...), '.'), group...), '[')
	return string(append(strconv.AppendInt(name, int64(index), 10), ']'))
}

// Index is the number at the end of the allocation's name, -1 if there is none.
func (a *Allocation) Index() int {
	open := strings.LastIndexByte(a.Name, '[')
	if open < 0 || !strings.HasSuffix(a.Name, "]") {
		return -1
	}
	i, err := strconv.Atoi(a.Name[open+1 : len(a.Name)-1])
	if err != nil {
		return -1
	}
	return i
}

// Version returns the version of the job placed.
func (a *Allocation) Version() uint64 {
	if a.Job == nil {
		return 0
	}
	return a.Job.Version
}

// ClientTerminal reports whether the node is done with it.
func (a *Allocation) ClientTerminal() bool {
	switch a.ClientStatus {
	case AllocClientComplete, AllocClientFailed, AllocClientLost:
		return true
	}
	return false
}

// ServerTerminal reports whether control wants it gone.
func (a *Allocation) ServerTerminal() bool {
	return a.DesiredStatus == AllocDesiredStop || a.DesiredStatus == AllocDesiredEvict
}

// Terminal reports whether it ended or should.
func (a *Allocation) Terminal() bool { return a.ServerTerminal() || a.ClientTerminal() }

// HoldsResources reports whether it still counts against its node. Only the node's word frees them: a stopped
// allocation holds its resources until the node says that it ended.
func (a *Allocation) HoldsResources() bool { return !a.ClientTerminal() }

// Quick ends: allocations that ended by themselves at once, which is what storms are made of.
const (
	QuickEnd       = time.Second     // an allocation that ran for less ended quickly
	QuickEndMemory = 2 * time.Minute // after so long without one, those before are forgotten
)

// QuickEnds counts a job's allocations that ended quickly, one after the other.
type QuickEnds struct {
	Count int
	Last  int64 // unix ns
}

// EndedQuickly reports whether the allocation ended by itself within QuickEnd of its last task's start, or without a start, and
// is one that is replaced. Allocations that control stopped and batch work that is done do not count. Runners do not either:
// pools, of which few may fail while many are claimed, have delays of their own.
func (a *Allocation) EndedQuickly() bool {
	if a.ServerTerminal() || a.Claim != nil {
		return false
	}
	if a.Job != nil {
		if g := a.Job.Group(a.TaskGroup); g != nil && g.Pool != nil {
			return false
		}
	}
	switch a.ClientStatus {
	case AllocClientFailed:
	case AllocClientComplete:
		if a.Job == nil || a.Job.Type != JobTypeService && a.Job.Type != JobTypeSystem {
			return false
		}
	default:
		return false
	}
	var started, finished time.Time
	for _, s := range a.TaskStates {
		if s.StartedAt.After(started) {
			started = s.StartedAt
		}
		if s.FinishedAt.After(finished) {
			finished = s.FinishedAt
		}
	}
	return started.IsZero() || finished.Sub(started) < QuickEnd
}

// AllocationMetric explains a placement, or why there was none.
type AllocationMetric struct {
	NodesEvaluated     int
	NodesFiltered      int
	NodesInPool        int
	NodePool           string
	NodesAvailable     map[string]int
	ClassFiltered      map[string]int
	ConstraintFiltered map[string]int
	NodesExhausted     int
	ClassExhausted     map[string]int
	DimensionExhausted map[string]int
	QuotaExhausted     []string
	ResourcesExhausted map[string]*Resources
	Scores             map[string]float64
	ScoreMetaData      []*NodeScoreMeta
	AllocationTime     time.Duration
	CoalescedFailures  int
}

// NodeScoreMeta is one candidate's score.
type NodeScoreMeta struct {
	NodeID    string
	Scores    map[string]float64
	NormScore float64
}

// DesiredTransition is set by people and by drains.
type DesiredTransition struct {
	Migrate                 *bool
	Reschedule              *bool
	ForceReschedule         *bool
	NoShutdownDelay         *bool
	MigrateDisablePlacement *bool
}

// AllocDeploymentStatus is an allocation's health within a deployment.
type AllocDeploymentStatus struct {
	Healthy     *bool
	Timestamp   time.Time
	Canary      bool
	ModifyIndex uint64
}

// Judged reports whether it is known if the allocation is healthy. A missing status is not.
func (s *AllocDeploymentStatus) Judged() bool { return s != nil && s.Healthy != nil }

// IsHealthy reports whether the allocation was found healthy.
func (s *AllocDeploymentStatus) IsHealthy() bool { return s.Judged() && *s.Healthy }

// IsUnhealthy reports whether the allocation was found unhealthy.
func (s *AllocDeploymentStatus) IsUnhealthy() bool { return s.Judged() && !*s.Healthy }

// RescheduleTracker is the chain of replacements.
type RescheduleTracker struct {
	Events         []*RescheduleEvent
	LastReschedule string
}

// RescheduleEvent is one replacement.
type RescheduleEvent struct {
	RescheduleTime int64
	PrevAllocID    string
	PrevNodeID     string
	Delay          time.Duration
}
