package localstate

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/exchange"
)

// Store keeps records by allocation and task. Its methods may be called by several goroutines.
type Store interface {
	// Load returns everything, in no order.
	Load() ([]Record, error)
	// Commit makes the changes and returns once they, and all that was queued before of their allocations, are durable;
	// calls at the same time share one write. After an error the changes are still pending: they are part of the next write.
	Commit(ctx context.Context, changes ...Change) error
	// Queue makes the changes soon, without waiting; their values must not change any more. An allocation's keep their
	// order, also with Commit.
	Queue(changes ...Change)
	// Settle returns once what was queued for the allocation is durable. Errors: as those of Commit.
	Settle(ctx context.Context, allocID string) error
	// Close writes what is pending.
	Close() error
}

// Record is an allocation as it was stored.
type Record struct {
	Alloc  *drover.Allocation
	Status Status
	Tasks  map[string]Task
}

// Status is what the node itself found out about an allocation.
type Status struct {
	ClientStatus      string // the last derived here, not control's
	ClientDescription string
	DeploymentStatus  *drover.AllocDeploymentStatus
	EndedAt           int64 // unix ns; 0 = has not
	TimedOut          bool  // max_run_duration was over
}

// Task is what is kept of a task.
type Task struct {
	State   *drover.TaskState
	Intent  string          // the id of a start, recorded before the driver is asked
	Handle  json.RawMessage // driver.State of the start, recorded before the task is reported as running
	Exit    *Exit           // how the start ended, recorded before the driver frees it
	Done    map[string]bool // prestart hooks that need not run again
	Killed  bool            // it was being stopped
	Stopped bool            // it has ended for good
	Tokens  map[string]Life `json:",omitempty"` // how long its tokens are good, by the names of its identities
	// Templates are what its templates asked at their last rendering; nil if none asks what may change.
	Templates []Template `json:",omitempty"`

	// Preparing is stored while hooks of a task run during whose hooks the agent may have died before.
	Preparing bool
}

// Template is what a template asked.
type Template struct {
	Asked   []exchange.Question
	Version string // of the answers; what they were is not kept
}

// Life is how long a token is good.
type Life struct{ Made, Expires time.Time }

// Exit is how a start ended.
type Exit struct {
	Code      int
	Signal    int
	OOMKilled bool
	Err       string
}

// Change is one put or delete. Make it with PutAlloc, PutStatus, PutTask or Drop.
type Change struct {
	key   string
	value any // nil deletes
}

// allocID is whose change it is.
func (c Change) allocID() string {
	_, rest, _ := strings.Cut(c.key, "/")
	id, _, _ := strings.Cut(rest, "/")
	return id
}

// PutAlloc records an allocation as control wants it.
func PutAlloc(a *drover.Allocation) Change { return Change{key: "alloc/" + a.ID, value: a} }

// PutStatus records how it stands.
func PutStatus(allocID string, s Status) Change { return Change{key: "status/" + allocID, value: s} }

// PutTask records a task.
func PutTask(allocID, task string, t Task) Change {
	return Change{key: "task/" + allocID + "/" + task, value: t}
}

// Drop forgets an allocation and the tasks named.
func Drop(allocID string, tasks ...string) []Change {
	changes := []Change{{key: "alloc/" + allocID}, {key: "status/" + allocID}}
	for _, t := range tasks {
		changes = append(changes, Change{key: "task/" + allocID + "/" + t})
	}
	return changes
}
