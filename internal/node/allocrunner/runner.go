package allocrunner

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/node/allocdir"
	"github.com/drover-project/drover/internal/node/checks"
	"github.com/drover-project/drover/internal/node/hook"
	"github.com/drover-project/drover/internal/node/localstate"
	"github.com/drover-project/drover/internal/node/taskmachine"
	"github.com/drover-project/drover/internal/node/taskrunner"
	"github.com/drover-project/drover/internal/wake"
)

// Config is what all allocations of a node share.
type Config struct {
	Shared *taskrunner.Shared
	// Contacted is closed once what control wants was received after this start of the agent. What could not be
	// restored does not start before.
	Contacted <-chan struct{}
	// Previous finds the allocation that this one replaces, if it was on this node. nil = nobody.
	Previous func(allocID string) *Runner
	// Fetch writes the data of the allocation on another node that this one replaces, as exchange.Migrations does. nil = there is none.
	Fetch func(ctx context.Context, allocID string, w io.Writer) error
	// Writers finds the older allocations of this node that write a host volume which the allocation may not write beside them. nil = nobody.
	Writers func(a *drover.Allocation) []*Runner
	// Report is called by the runner's goroutine whenever something observable changed; it must not block.
	Report func(exchange.AllocUpdate)
	// Prober carries out the checks of services; nil = over the machine's network.
	Prober checks.Prober
}

// Runner runs one allocation.
type Runner struct {
	// Constant.
	cfg   Config
	clock clock.Clock
	log   *slog.Logger
	id    string
	dir   allocdir.Dir
	inbox chan func()
	done  chan struct{}
	found chan struct{} // closed when stored tasks were looked for
	tasks map[string]*taskrunner.Runner

	// Owned by Run.
	alloc     *drover.Allocation
	group     *drover.TaskGroup // of alloc's job
	restored  bool
	contacted bool
	opened    stage
	kill      *killing
	reviving  bool // all tasks are being restarted: when they are dead they live again
	timedOut  bool
	noPost    bool // poststop tasks must not start
	health    health
	checks    checking // its set is for any goroutine
	life      context.Context
	timers    []clock.Timer
	longest   time.Duration // max_run_duration; 0 = none
	limit     clock.Timer   // of longest
	reported  exchange.AllocUpdate

	mu     sync.Mutex // guards what follows
	latest *drover.Allocation
	remove bool // control does not list it any more
	hasten bool // and no delay is to be waited for
	wake   wake.Signal
	view   View
	spec   *drover.TaskGroup // group, for other goroutines
}

// View is what others may know of an allocation. Its parts are not changed.
type View struct {
	Alloc   *drover.Allocation   // control's
	Update  exchange.AllocUpdate // the last reported
	EndedAt int64                // unix ns; 0 = it has not ended
}

// Ended reports whether the allocation has ended.
func (v View) Ended() bool { return v.EndedAt != 0 }

// New returns the runner of an allocation that was just assigned.
func New(cfg Config, alloc *drover.Allocation, dir allocdir.Dir) (*Runner, error) {
	r, err := build(cfg, alloc, dir)
	if err != nil {
		return nil, err
	}
	for _, t := range r.group.Tasks {
		r.tasks[t.Name] = taskrunner.New(r.taskConfig(t))
	}
	return r, nil
}

// Restore returns the runner of an allocation as it was stored. One that has ended only keeps its last word.
func Restore(cfg Config, record localstate.Record, dir allocdir.Dir) (*Runner, error) {
	r, err := build(cfg, record.Alloc, dir)
	if err != nil {
		return nil, err
	}
	r.restored = true
	r.timedOut = record.Status.TimedOut
	r.health.status = record.Status.DeploymentStatus // of the deployment that the stored allocation belongs to
	for _, t := range r.group.Tasks {
		r.tasks[t.Name] = taskrunner.Restore(r.taskConfig(t), record.Tasks[t.Name])
	}
	if record.Status.EndedAt != 0 {
		r.reported = r.observe()
		r.reported.ClientStatus, r.reported.ClientDescription = record.Status.ClientStatus, record.Status.ClientDescription
		r.view.Update, r.view.EndedAt = r.reported, record.Status.EndedAt
		close(r.done)
	}
	return r, nil
}

// build makes a runner without tasks, for New and Restore. Errors: Invalid for an allocation whose job or group is
// missing.
func build(cfg Config, alloc *drover.Allocation, dir allocdir.Dir) (*Runner, error) {
	if alloc.Job == nil {
		return nil, drover.Errorf(drover.Invalid, "allocation %s: has no job", alloc.ID)
	}
	group := alloc.Job.Group(alloc.TaskGroup)
	if group == nil || len(group.Tasks) == 0 {
		return nil, drover.Errorf(drover.Invalid, "allocation %s: its job has no group %q with tasks", alloc.ID, alloc.TaskGroup)
	}
	r := &Runner{
		cfg: cfg, clock: cfg.Shared.Clock, log: cfg.Shared.Log.With("alloc", alloc.ID), id: alloc.ID, group: group, dir: dir,
		alloc: alloc, latest: alloc, inbox: make(chan func()), done: make(chan struct{}), found: make(chan struct{}), wake: wake.NewSignal(),
		tasks: map[string]*taskrunner.Runner{}, view: View{Alloc: alloc}, spec: group, health: health{deployment: alloc.DeploymentID},
	}
	r.newChecking(cfg.Prober)
	return r, nil
}

// taskConfig is what the task's runner needs. Its events go through the inbox, so that they are applied in Run's
// goroutine.
func (r *Runner) taskConfig(t *drover.Task) taskrunner.Config {
	return taskrunner.Config{
		Shared: r.cfg.Shared, Alloc: r.alloc, Group: r.group, Task: t, Dir: r.dir,
		Post: func(ev taskmachine.Event) { r.send(func() { r.apply(t.Name, ev) }) },
	}
}

// Run runs the allocation until it has ended, or life ends: then its tasks are left alone.
func (r *Runner) Run(life context.Context) {
	found := sync.OnceFunc(func() { close(r.found) })
	defer found()
	if r.View().Ended() {
		return
	}
	defer close(r.done)
	r.life = life
	taskCtx, cancel := context.WithCancel(life)
	defer cancel()
	for _, t := range r.tasks {
		t.Start(taskCtx)
	}
	r.begin(life)
	found()
	r.takeOrders()
	for r.settle(); !r.ended(); r.settle() {
		select {
		case f := <-r.inbox:
			f()
		case <-r.wake.C():
			r.takeOrders()
		case <-life.Done():
			cancel()
			r.leave()
			return
		}
	}
	r.leaveNetwork(life)
	r.finish()
	cancel()
	r.leave()
}

// networkPatience is how long the group's network may take to be given up.
const networkPatience = 30 * time.Second

// leaveNetwork gives up the group's network after the last task, also while the agent ends. What fails here is found by
// the sweep of the agent's next start.
func (r *Runner) leaveNetwork(life context.Context) {
	if r.cfg.Shared.Networks == nil {
		return
	}
	ctx, cancel := r.clock.WithTimeout(context.WithoutCancel(life), networkPatience)
	defer cancel()
	if err := r.cfg.Shared.Networks.Leave(ctx, r.id); err != nil {
		r.log.Error("the allocation's network stays until the agent starts again", "error", err)
	}
}

// leave waits for what was begun; its messages are not heard any more.
func (r *Runner) leave() {
	for _, t := range r.timers {
		t.Stop()
	}
	idle := make(chan struct{})
	go func() { // ends when the tasks' work has ended, which their context's end brings about
		defer close(idle)
		for _, t := range r.tasks {
			t.Wait()
		}
		r.checks.set.Close()
	}()
	for {
		select {
		case <-r.inbox:
		case <-idle:
			return
		}
	}
}

// send hands f to Run, and drops it when Run has ended.
func (r *Runner) send(f func()) {
	select {
	case r.inbox <- f:
	case <-r.done:
	}
}

// ask runs f in Run's goroutine and returns its error.
func (r *Runner) ask(ctx context.Context, f func() error) error {
	answer := make(chan error, 1)
	select {
	case r.inbox <- func() { answer <- f() }:
	case <-r.done:
		return drover.Errorf(drover.Gone, "allocation %s has ended", r.id)
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-answer:
		return err
	case <-r.done:
		return drover.Errorf(drover.Gone, "allocation %s has ended", r.id)
	}
}

// after runs f in Run's goroutine after d.
func (r *Runner) after(d time.Duration, f func()) clock.Timer {
	t := r.clock.AfterFunc(max(d, 0), func() { r.send(f) })
	r.timers = append(r.timers, t)
	return t
}

// begin stores a new allocation and makes its folder, or finds the tasks of a restored one.
func (r *Runner) begin(life context.Context) {
	r.limitRun()
	r.rewatch()
	if r.restored {
		r.recover(life)
		return
	}
	if err := r.store(life); err != nil {
		if life.Err() == nil { // else control will hand it out again
			r.setupFailed(err)
		}
		return
	}
	if err := r.makeDir(life); err != nil {
		r.setupFailed(err)
		return
	}
	r.awaitWriters(life)
	r.inherit(life)
}

// makeDir makes the folder, as one of the starts under way: a thousand at once would be a thousand threads.
func (r *Runner) makeDir(life context.Context) error {
	if !hook.NeedsFolders(r.alloc, r.group, r.cfg.Shared.Drivers) {
		return nil
	}
	select {
	case r.cfg.Shared.Slots <- struct{}{}:
		defer func() { <-r.cfg.Shared.Slots }()
		return r.dir.Build()
	case <-life.Done():
		return nil // nothing will start
	}
}

// store makes the new allocation and its tasks durable before anything starts. An agent that is killed later then knows
// what it may have started.
func (r *Runner) store(ctx context.Context) error {
	changes := []localstate.Change{localstate.PutAlloc(r.alloc)}
	for name, t := range r.tasks {
		changes = append(changes, localstate.PutTask(r.id, name, t.Record()))
	}
	return r.cfg.Shared.State.Commit(ctx, changes...)
}

// standing is what is stored of the allocation as a whole; endedAt is in Unix nanoseconds, 0 while it goes on.
func (r *Runner) standing(endedAt int64) localstate.Status {
	return localstate.Status{
		ClientStatus: r.reported.ClientStatus, ClientDescription: r.reported.ClientDescription,
		DeploymentStatus: r.health.status, EndedAt: endedAt, TimedOut: r.timedOut,
	}
}

// setupFailed ends all tasks before they started, and lets no poststop task start, as there is nothing to clean up.
func (r *Runner) setupFailed(err error) {
	r.noPost = true
	for _, t := range r.group.Tasks {
		r.apply(t.Name, taskmachine.Kill{Type: drover.TaskSetupFailure, Reason: "failed to setup alloc: " + err.Error(), Fails: true})
	}
}

// recover finds the tasks that ran. What could not be found waits for control's word.
func (r *Runner) recover(life context.Context) {
	var later []func()
	if !r.dir.Exists() && hook.NeedsFolders(r.alloc, r.group, r.cfg.Shared.Drivers) {
		if err := r.dir.Build(); err != nil {
			r.setupFailed(err)
			return
		}
	}
	for _, t := range r.group.Tasks {
		name := t.Name
		switch ev := r.tasks[name].Recover(life).(type) {
		case nil:
		case taskmachine.Restored:
			r.apply(name, ev)
		default:
			later = append(later, func() { r.apply(name, ev) })
		}
	}
	for _, t := range r.group.Tasks {
		r.opened = max(r.opened, r.reached(t))
	}
	go func() { // ends with the contact or the agent
		select {
		case <-r.cfg.Contacted:
			r.send(func() {
				r.contacted = true
				for _, f := range later {
					f()
				}
			})
		case <-life.Done():
		}
	}()
}

// reached is the stage that must have been open for the task to have come as far as it did.
func (r *Runner) reached(t *drover.Task) stage {
	if s := r.tasks[t.Name].Status().State; s.StartedAt.IsZero() || stageOf(t) == stagePoststop {
		return stagePrestart
	}
	return stageOf(t)
}

// apply gives an event to a task.
func (r *Runner) apply(task string, ev taskmachine.Event) { r.tasks[task].Apply(ev) }

// state returns a task's state as the API shows it. It must not be changed.
func (r *Runner) state(name string) *drover.TaskState { return r.tasks[name].Status().State }

// ended reports whether all tasks are dead and none is to live again.
func (r *Runner) ended() bool {
	for _, t := range r.tasks {
		if t.Status().Phase != taskmachine.Dead {
			return false
		}
	}
	return !r.reviving
}

// finish stores the end.
func (r *Runner) finish() {
	at := r.clock.Now().UnixNano()
	if err := errors.Join(r.dir.RemoveState(r.TaskNames()...), r.dir.UnmountSecrets(r.TaskNames()...), r.dir.Shut()); err != nil {
		r.log.Warn("removing what is left of the tasks", "error", err)
	}
	r.cfg.Shared.State.Queue(localstate.PutStatus(r.id, r.standing(at)))
	r.mu.Lock()
	r.view.EndedAt = at
	r.mu.Unlock()
}

// Update gives the runner what control wants now. It does not block.
func (r *Runner) Update(alloc *drover.Allocation) {
	r.mu.Lock()
	if alloc.AllocModifyIndex >= r.latest.AllocModifyIndex {
		r.latest, r.view.Alloc = alloc, alloc
	}
	r.mu.Unlock()
	r.wake.Send()
}

// Remove says that control does not want the allocation any more; noDelay skips shutdown delays. It does not block.
func (r *Runner) Remove(noDelay bool) {
	r.mu.Lock()
	r.remove, r.hasten = true, r.hasten || noDelay
	r.mu.Unlock()
	r.wake.Send()
}

// Stopping reports whether the allocation is to end, and has not.
func (r *Runner) Stopping() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return (r.remove || r.latest.ServerTerminal()) && !r.view.Ended()
}

// Done is closed when Run has ended.
func (r *Runner) Done() <-chan struct{} { return r.done }

// Found is closed once the tasks of a restored allocation were looked for; at once for a new one.
func (r *Runner) Found() <-chan struct{} { return r.found }
