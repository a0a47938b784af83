package taskrunner

import (
	"context"
	"fmt"
	"hash/fnv"
	"log/slog"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/node/allocdir"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/hook"
	"github.com/drover-project/drover/internal/node/localstate"
	"github.com/drover-project/drover/internal/node/taskmachine"
	"github.com/drover-project/drover/network"
)

// Shared is what all tasks of a node have in common.
type Shared struct {
	Node           func() *drover.Node
	Drivers        map[string]driver.Driver
	Hooks          []hook.Prestart
	Settings       hook.Settings // of the hooks
	Clock          clock.Clock
	IDs            id.Source
	Log            *slog.Logger
	State          localstate.Store
	Networks       Networks      // nil: no group shares a network
	Slots          chan struct{} // its capacity bounds the starts under way
	MaxKillTimeout time.Duration
	// Reclaim ends what a start left in its state folder that was interrupted before it was stored. nil = nothing.
	Reclaim func(ctx context.Context, stateDir string) error
	// Died says that the agent's last run did not end as it should: it was killed, or the machine lost its power. It is
	// set before anything is restored.
	Died bool
	// Turn is held while hooks run during which the agent may have died. Its capacity is 1. nil = nothing is restored.
	Turn chan struct{}
	// Publish: sample the task while it runs. nil = do not.
	Publish func(alloc *drover.Allocation, task string, meter driver.Meter) *hook.Stats
	// Calm reports whether nobody uses this node's warm runners at the moment. nil = it is not known.
	Calm func() bool
	// SignedBy returns the keys that may have signed images of the namespace's tasks; none: they need not be signed. nil = nobody asks.
	SignedBy func(namespace string) []string
	// Signer renews tasks' tokens. nil = they are not renewed.
	Signer hook.Signer
	// Terminated is told of every exit. nil = nobody.
	Terminated func(alloc *drover.Allocation, task string, exit driver.Exit)
}

// Networks has the network namespaces that the tasks of an allocation share; node/groupnet is one.
type Networks interface {
	// Join returns the task's, made with the first that joins it; nil if the task has one of its own.
	Join(ctx context.Context, alloc *drover.Allocation, group *drover.TaskGroup, task *drover.Task) (*driver.NetNS, error)
	// Status is the allocation's address; nil if its tasks share none.
	Status(allocID string) *network.Status
	// Leave gives it up once all tasks have ended. Idempotent.
	Leave(ctx context.Context, allocID string) error
}

// Config is one task.
type Config struct {
	Shared *Shared
	Alloc  *drover.Allocation
	Group  *drover.TaskGroup
	Task   *drover.Task
	Dir    allocdir.Dir
	// Post hands an event to the loop that calls Apply. It may be called by any goroutine, and gives up when the
	// loop has ended.
	Post func(taskmachine.Event)
}

// work is what the task is to do. An update in place brings another one to a running task: its policies and timeouts
// count from then on, and the rest of it from the next start.
type work struct {
	alloc *drover.Allocation
	group *drover.TaskGroup
	task  *drover.Task
}

// Runner runs one task.
type Runner struct {
	// Constant.
	shared  *Shared
	allocID string
	name    string
	dir     allocdir.Dir
	post    func(taskmachine.Event)

	// Owned by the loop.
	work   work
	view   taskmachine.View
	status taskmachine.Status
	life   context.Context    // ends with the agent
	cancel context.CancelFunc // ends a prepare or launch
	wake   clock.Timer        // of a backoff
	halt   context.CancelFunc // ends a stop's trying: the task has ended
	soon   context.CancelFunc // ends a stop's shutdown_delay

	begun sync.WaitGroup // what was started and will post

	mu       sync.Mutex // guards what follows
	handle   driver.Handle
	prepared *hook.Request // what the hooks made of the specification
	unfollow func() bool   // has prepared outlive the agent's life: it was closed
	record   localstate.Task
	suspect  bool // the agent may have died during its hooks
}

// New returns the runner of a task that was just received.
func New(cfg Config) *Runner {
	r := build(cfg)
	r.status = taskmachine.New(r.shared.Clock.Now())
	r.record.Intent = r.newIntent()
	r.record.State = r.status.State
	return r
}

// Restore returns the runner of a task as it was stored. Its loop must call Recover.
func Restore(cfg Config, record localstate.Task) *Runner {
	r := build(cfg)
	r.record = record
	if record.State == nil {
		r.status = taskmachine.New(r.shared.Clock.Now())
		r.record.State = r.status.State
		return r
	}
	r.status = taskmachine.Restore(record.State, record.Killed, len(record.Handle) > 0)
	return r
}

// build makes a runner without a status, for New and Restore.
func build(cfg Config) *Runner {
	r := &Runner{shared: cfg.Shared, allocID: cfg.Alloc.ID, name: cfg.Task.Name, dir: cfg.Dir, post: cfg.Post}
	r.Update(cfg.Alloc, cfg.Group, cfg.Task)
	return r
}

// Start gives the runner its life; Apply may be called from then on. When life ends, what runs is left alone.
func (r *Runner) Start(life context.Context) { r.life = life }

// Apply makes one step and begins what follows from it. It reports whether the status changed. Only the loop calls it.
func (r *Runner) Apply(ev taskmachine.Event) bool {
	before := r.status
	var effects []taskmachine.Effect
	r.status, effects = taskmachine.Step(r.view, r.status, ev, r.shared.Clock.Now(), r.jitter())
	for _, e := range effects {
		r.perform(e)
	}
	changed := before.State != r.status.State || before.Phase != r.status.Phase
	if changed && r.worthKeeping(before.Phase) {
		r.keep()
	}
	return changed
}

// worthKeeping reports whether the step led to another phase that has to be stored. In Pending, Preparing and Starting,
// what was stored at the beginning of the start is enough to find the task again.
func (r *Runner) worthKeeping(before taskmachine.Phase) bool {
	switch r.status.Phase {
	case taskmachine.Running, taskmachine.Stopping, taskmachine.Backoff, taskmachine.Dead:
		return before != r.status.Phase
	case taskmachine.Pending, taskmachine.Preparing, taskmachine.Starting:
	}
	return false
}

// keep stores the task without waiting.
func (r *Runner) keep() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refresh()
	r.shared.State.Queue(localstate.PutTask(r.allocID, r.name, r.record))
}

// Record returns what is to be stored of the task. Only the loop calls it.
func (r *Runner) Record() localstate.Task {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refresh()
	return r.record
}

// refresh brings the record up to the status. r.mu is held, and only the loop calls it.
func (r *Runner) refresh() {
	r.record.State, r.record.Killed = r.status.State, r.status.Killed
	r.record.Stopped = r.status.Phase == taskmachine.Dead
}

// change changes the record and stores it durably. Changes are queued under the lock, so that a later one never loses
// to an earlier. Any goroutine may call it.
func (r *Runner) change(ctx context.Context, f func(*localstate.Task)) error {
	r.mu.Lock()
	f(&r.record)
	r.shared.State.Queue(localstate.PutTask(r.allocID, r.name, r.record))
	r.mu.Unlock()
	if err := r.shared.State.Settle(ctx, r.allocID); err != nil {
		return fmt.Errorf("storing the task's state: %w", err)
	}
	return nil
}

// Status returns where the task stands. Only the loop calls it.
func (r *Runner) Status() taskmachine.Status { return r.status }

// Update gives the runner a newer version of its allocation, with the group and the task as they are in its job. Only
// the loop calls it.
func (r *Runner) Update(alloc *drover.Allocation, group *drover.TaskGroup, task *drover.Task) {
	r.work = work{alloc, group, task}
	r.view = taskmachine.ViewOf(alloc.Job, group, task, r.shared.MaxKillTimeout)
}

// Handle returns the running task, nil if it does not run. Any goroutine may call it.
func (r *Runner) Handle() driver.Handle {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.handle
}

// Wait returns once nothing that was begun is under way. Life must have ended, or the task be dead.
func (r *Runner) Wait() {
	if r.wake != nil {
		r.wake.Stop()
	}
	r.begun.Wait()
}

// begin runs f beside the loop.
func (r *Runner) begin(f func()) { r.begun.Go(f) } // ends with f, whose context life or a deadline ends

// newIntent makes the id of a start.
func (r *Runner) newIntent() string {
	return r.allocID + "/" + r.name + "/" + r.shared.IDs.New()[:8]
}

// jitter is a number in [0, 1) that differs between tasks and starts, and repeats with the ids.
func (r *Runner) jitter() float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := fnv.New32a()
	_, _ = h.Write([]byte(r.record.Intent))
	return float64(h.Sum32()) / (1 << 32)
}

// Hurry ends a shutdown_delay that is being waited for. Only the loop calls it.
func (r *Runner) Hurry() {
	if r.soon != nil {
		r.soon()
	}
}
