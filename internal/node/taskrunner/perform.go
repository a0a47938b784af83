package taskrunner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/hook"
	"github.com/drover-project/drover/internal/node/localstate"
	"github.com/drover-project/drover/internal/node/taskmachine"
	"github.com/drover-project/drover/internal/stack"
	"github.com/drover-project/drover/internal/taskenv"
)

// perform begins an effect and returns at once: what takes time runs in a goroutine and posts its answer. Only the loop
// calls it, so the fields that the loop owns need no lock.
func (r *Runner) perform(e taskmachine.Effect) {
	switch e := e.(type) {
	case taskmachine.Prepare:
		ctx, w := r.startContext(), r.work
		r.begin(func() {
			stack.Grow8K()
			r.post(r.prepare(ctx, w))
		})
	case taskmachine.Launch:
		ctx, alloc := r.startContext(), r.work.alloc
		r.begin(func() {
			stack.Grow16K()
			r.post(r.launch(ctx, alloc))
		})
	case taskmachine.Await:
		h, w := r.Handle(), r.work
		r.begin(func() {
			stack.Grow8K()
			r.await(w, h)
		})
	case taskmachine.Cancel:
		if r.cancel != nil {
			r.cancel()
		}
	case taskmachine.Stop:
		h := r.Handle()
		ctx, halt := context.WithCancel(r.life)
		delayCtx, soon := context.WithCancel(ctx)
		r.halt, r.soon = halt, soon
		r.begin(func() { r.stop(ctx, delayCtx, h, e) })
	case taskmachine.Wake:
		r.wake = r.shared.Clock.AfterFunc(e.Delay, func() { r.post(taskmachine.Due{}) })
	case taskmachine.Destroy:
		r.released()
	case taskmachine.Finish:
		if r.cancel != nil {
			r.cancel()
		}
		r.cancel, r.halt, r.soon = nil, nil, nil
		r.mu.Lock()
		r.unprepare() // the agent keeps ended allocations for a while
		r.mu.Unlock()
	}
}

// startContext returns the context of the next phase of a start and ends that of the phase before. Cancel ends the last
// one.
func (r *Runner) startContext() context.Context {
	if r.cancel != nil {
		r.cancel()
	}
	ctx, cancel := context.WithCancel(r.life)
	r.cancel = cancel
	return ctx
}

// slot waits for a place among the starts under way.
func (r *Runner) slot(ctx context.Context) (release func(), err error) {
	select {
	case r.shared.Slots <- struct{}{}:
		return func() { <-r.shared.Slots }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// request makes what the hooks work on. Each start gets a new one, as node, allocation and environment may have changed.
func (r *Runner) request(w work) *hook.Request {
	dirs := r.dir.Task(r.name)
	node := r.shared.Node()
	in := taskenv.Input{Node: node, Alloc: w.alloc, Group: w.group, Task: w.task, Dirs: hook.EnvDirs(dirs)}
	if r.shared.Networks != nil {
		in.Network = r.shared.Networks.Status(w.alloc.ID)
	}
	return &hook.Request{
		Node: node, Alloc: w.alloc, Group: w.group, Task: w.task, Dir: r.dir, Dirs: dirs, Driver: r.shared.Drivers[w.task.Driver],
		Env:  taskenv.Build(in),
		Emit: func(e *drover.TaskEvent) { r.post(taskmachine.Noted{Event: e}) },
	}
}

// prepare runs the prestart hooks.
func (r *Runner) prepare(ctx context.Context, w work) taskmachine.Event {
	if r.shared.Drivers[w.task.Driver] == nil {
		return taskmachine.PrepareFailed{Type: drover.TaskDriverFailure, Reason: fmt.Sprintf("driver %q is not on this node", w.task.Driver)}
	}
	if err := r.meet(ctx, w); err != nil {
		return taskmachine.PrepareFailed{Reason: err.Error(), Recoverable: joinable(err)}
	}
	release, err := r.underSuspicion(ctx)
	if err != nil {
		return taskmachine.PrepareFailed{Reason: err.Error(), Recoverable: true}
	}
	free := func() {}
	if len(w.task.Artifacts) == 0 { // a download must not keep others from starting
		if free, err = r.slot(ctx); err != nil {
			release()
			return taskmachine.PrepareFailed{Reason: err.Error(), Recoverable: true}
		}
	}
	leave := sync.OnceFunc(func() { free(); release() })
	defer leave()
	r.mu.Lock()
	done := r.record.Done
	r.unprepare()
	r.mu.Unlock()
	request := r.request(w)
	request.Yield = func() { // nor must what a template waits for
		r.mu.Lock()
		r.cleared(ctx)
		r.mu.Unlock()
		leave()
	}
	done, err = hook.Run(ctx, r.shared.Hooks, request, done)
	r.mu.Lock()
	r.record.Done, r.record.Tokens, r.record.Templates = done, request.Tokens, request.Live.Record()
	r.cleared(ctx)
	r.prepared, r.unfollow = request, context.AfterFunc(r.life, request.Close) //nolint:contextcheck // it outlives the start
	r.mu.Unlock()
	if err == nil {
		return taskmachine.Prepared{}
	}
	failed := taskmachine.PrepareFailed{Reason: err.Error(), Recoverable: true}
	var f *hook.Failure
	if errors.As(err, &f) {
		failed.Type, failed.Recoverable = f.Type, f.Recoverable
	}
	return failed
}

// meet makes the group's network if nobody has, before hooks ask for its addresses. It is no start under way yet: plugins of CNI may take
// their time.
func (r *Runner) meet(ctx context.Context, w work) error {
	if r.shared.Networks == nil || r.shared.Networks.Status(w.alloc.ID) != nil {
		return nil
	}
	ns, err := r.join(ctx, w.alloc, w.group, w.task)
	if err == nil && ns != nil && ns.Note != "" {
		r.post(taskmachine.Noted{Event: taskmachine.NewEvent(drover.TaskDriverMessage, ns.Note)})
	}
	return err
}

// join puts the task into the group's network, with what the network block says after interpolation.
func (r *Runner) join(ctx context.Context, alloc *drover.Allocation, g *drover.TaskGroup, t *drover.Task) (*driver.NetNS, error) {
	if len(g.Networks) > 0 {
		env := taskenv.Build(taskenv.Input{Node: r.shared.Node(), Alloc: alloc, Group: g, Dirs: hook.EnvDirs(r.dir.Task(r.name))})
		g = new(*g)
		g.Networks = env.Networks(g.Networks)
	}
	return r.shared.Networks.Join(ctx, alloc, g, t)
}

// joinable reports whether another try may lead into the network.
func joinable(err error) bool {
	code := drover.CodeOf(err)
	return code != drover.Conflict && code != drover.Invalid
}

// unprepare forgets what the hooks made for the start before. r.mu is held.
func (r *Runner) unprepare() {
	if r.prepared != nil {
		r.unfollow()
		r.prepared.Close()
	}
	r.prepared, r.unfollow = nil, nil // which holds it, too
}

// launch asks the driver. Before that the id of the start is stored, and before it is called started, how to find it.
func (r *Runner) launch(ctx context.Context, alloc *drover.Allocation) taskmachine.Event {
	intent, err := r.intend(ctx)
	if err != nil {
		return taskmachine.StartFailed{Reason: err.Error(), Recoverable: true}
	}
	h, err := r.ask(ctx, alloc, intent)
	if err != nil {
		if ctx.Err() == nil {
			r.shared.Log.Warn("a task could not be started", "alloc", alloc.ID, "task", r.name, "error", err)
		}
		r.forgetStart()
		failed := taskmachine.StartFailed{Reason: err.Error(), Recoverable: ctx.Err() != nil}
		var start *driver.StartError
		if errors.As(err, &start) {
			failed.Recoverable = start.Recoverable
		}
		return failed
	}
	if err := r.keepHandle(context.WithoutCancel(ctx), h); err != nil {
		r.destroy(h)
		r.forgetStart()
		return taskmachine.StartFailed{Reason: err.Error(), Recoverable: true}
	}
	r.mu.Lock()
	r.handle = h
	r.mu.Unlock()
	return taskmachine.Started{}
}

// keepHandle stores how to find the start again.
func (r *Runner) keepHandle(ctx context.Context, h driver.Handle) error {
	data, err := json.Marshal(h.State())
	if err != nil {
		return fmt.Errorf("encoding the driver's state: %w", err)
	}
	return r.change(ctx, func(t *localstate.Task) { t.Handle = data })
}

// intend returns the id of the start. The first start's was stored with the allocation.
func (r *Runner) intend(ctx context.Context) (string, error) {
	r.mu.Lock()
	intent := r.record.Intent
	r.mu.Unlock()
	if intent != "" {
		return intent, nil
	}
	intent = r.newIntent()
	return intent, r.change(ctx, func(t *localstate.Task) { t.Intent = intent })
}

// ask has the driver start the task, within the node's bound on starts under way. Warm runners rehearse their first
// command only while nobody uses other runners, because that takes a core.
func (r *Runner) ask(ctx context.Context, alloc *drover.Allocation, intent string) (driver.Handle, error) {
	release, err := r.slot(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	r.mu.Lock()
	request := r.prepared
	r.mu.Unlock()
	if request == nil {
		return nil, context.Canceled // the task is dead
	}
	s := spec(alloc, request, intent)
	if r.shared.SignedBy != nil {
		s.Namespace, s.SignedBy = alloc.Namespace, r.shared.SignedBy(alloc.Namespace)
	}
	s.Rehearse = s.Pool && r.shared.Calm != nil && r.shared.Calm()
	if r.shared.Networks != nil {
		if s.NetNS, err = r.join(ctx, alloc, request.Group, request.Task); err != nil {
			return nil, &driver.StartError{Recoverable: joinable(err), Err: err}
		}
		s.Networks = resolved(s.Networks, s.NetNS)
	}
	s.Tell = func(message string) {
		r.post(taskmachine.Noted{Event: taskmachine.NewEvent(drover.TaskDriverMessage, message)})
	}
	return request.Driver.Start(ctx, s)
}

// forgetStart forgets the start that failed or ended.
func (r *Runner) forgetStart() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.handle = nil
	r.record.Intent, r.record.Handle, r.record.Exit = "", nil, nil
}

// await waits for the end. The exit is stored before the driver frees the task: it can be asked for only once.
func (r *Runner) await(w work, h driver.Handle) {
	ctx, alloc := r.life, w.alloc
	stats, renewal, following, api := r.publish(ctx, alloc, h), r.renew(ctx, w, h), r.follow(ctx, w, h), r.offer(ctx, w)
	if n, ok := h.(driver.Noticer); ok {
		n.OnNotice(func(text string) {
			e := taskmachine.NewEvent(drover.TaskDriverMessage, text, "driver_message", text)
			e.DriverMessage = text
			r.post(taskmachine.Noted{Event: e})
		})
	}
	exit, err := h.Wait(ctx)
	stats()
	renewal()
	following()
	api.Close()
	if err != nil && ctx.Err() != nil { // the agent ends; the task goes on
		r.awaitRequests(ctx, api)
		return
	}
	if err != nil {
		exit = driver.Exit{Code: -1, Err: err}
	}
	if r.shared.Terminated != nil {
		r.shared.Terminated(alloc, r.name, exit)
	}
	ev := taskmachine.Exited{Code: exit.Code, Signal: exit.Signal, OOMKilled: exit.OOMKilled}
	if exit.Err != nil {
		ev.Err = exit.Err.Error()
	}
	err = r.change(context.WithoutCancel(ctx), func(t *localstate.Task) {
		t.Exit = &localstate.Exit{Code: ev.Code, Signal: ev.Signal, OOMKilled: ev.OOMKilled, Err: ev.Err}
	})
	if err != nil {
		r.shared.Log.Error("a task's exit could not be stored", "alloc", alloc.ID, "task", r.name, "error", err)
	}
	r.destroy(h)
	r.post(ev)
}

// publish samples the task until the returned function is called.
func (r *Runner) publish(ctx context.Context, alloc *drover.Allocation, h driver.Handle) (end func()) {
	meter, ok := h.(driver.Meter)
	if r.shared.Publish == nil || !ok {
		return func() {}
	}
	stats := r.shared.Publish(alloc, r.name, meter)
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { // ends with ctx
		defer close(done)
		stats.Run(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}

const destroyTimeout = 30 * time.Second

// destroy frees what the driver holds of an ended task. It goes on while the agent ends, for at most destroyTimeout. A
// failure is logged, and does not keep the task from ending.
func (r *Runner) destroy(h driver.Handle) {
	ctx, cancel := r.shared.Clock.WithTimeout(context.WithoutCancel(r.life), destroyTimeout)
	defer cancel()
	if err := h.Destroy(ctx); err != nil && !errors.Is(err, driver.ErrGone) {
		r.shared.Log.Error("a task left something behind", "alloc", r.allocID, "task", r.name, "error", err)
	}
}

// released ends what belonged to the start that ended.
func (r *Runner) released() {
	if r.halt != nil {
		r.halt()
	}
	r.forgetStart()
}

const (
	stopRetry    = 5 * time.Second
	stopRetryMax = 2 * time.Minute
)

// stop ends the task after its delay, trying again until it has ended (ctx ends then, or with the agent).
func (r *Runner) stop(ctx, delay context.Context, h driver.Handle, e taskmachine.Stop) {
	if e.Delay > 0 {
		clock.Sleep(delay, r.shared.Clock, e.Delay)
	}
	for wait := stopRetry; ctx.Err() == nil; wait = min(4*wait, stopRetryMax) {
		err := h.Stop(ctx, e.Signal, e.Timeout)
		if err == nil || errors.Is(err, driver.ErrGone) || ctx.Err() != nil {
			return
		}
		r.post(taskmachine.StopFailed{Reason: err.Error()})
		clock.Sleep(ctx, r.shared.Clock, wait)
	}
}
