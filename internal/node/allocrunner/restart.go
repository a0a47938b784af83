package allocrunner

import (
	"context"
	"fmt"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/taskmachine"
)

// Restart restarts one task; with "" all that run; with all, every task from the start of the lifecycle, those that
// have ended too. Errors: NotFound, Conflict (a warm runner, or nothing runs), Gone.
func (r *Runner) Restart(ctx context.Context, task string, all bool) error {
	return r.ask(ctx, func() error {
		switch {
		case r.group.Pool != nil:
			return drover.Errorf(drover.Conflict, "allocation %s is a warm runner: it is never started again", r.id)
		case r.kill != nil:
			return drover.Errorf(drover.Conflict, "allocation %s is being stopped", r.id)
		case all:
			r.reviving = true
			r.kill = &killing{
				cause: taskmachine.Kill{Type: drover.TaskRestartSignal, Reason: "User requested all tasks to restart", NoDelay: true}, due: true,
			}
			return nil
		case task != "":
			return r.restartOne(task)
		}
		some := false
		for _, t := range r.group.Tasks {
			some = r.restartOne(t.Name) == nil || some
		}
		if !some {
			return drover.Errorf(drover.Conflict, "no task of allocation %s is running", r.id)
		}
		return nil
	})
}

// restartOne restarts a task that runs or waits for its restart. Errors: NotFound, Conflict.
func (r *Runner) restartOne(task string) error {
	t := r.tasks[task]
	if t == nil {
		return drover.Errorf(drover.NotFound, "allocation %s has no task %q", r.id, task)
	}
	if p := t.Status().Phase; p != taskmachine.Running && p != taskmachine.Backoff {
		return drover.Errorf(drover.Conflict, "task %q is not running", task)
	}
	r.apply(task, taskmachine.Restart{})
	return nil
}

// revive lets all tasks live again once the restart of all has ended them.
func (r *Runner) revive() {
	if !r.reviving || !onlyPoststopLeft(r.group.Tasks, r.state) {
		return
	}
	r.reviving, r.kill, r.opened, r.restored = false, nil, stagePrestart, false
	for _, t := range r.group.Tasks {
		if stageOf(t) != stagePoststop {
			r.apply(t.Name, taskmachine.Revive{})
		}
	}
}

// stopReviving has the tasks that end for the restart of all end for good.
func (r *Runner) stopReviving() {
	if r.reviving {
		r.reviving, r.kill = false, nil
	}
}

// Signal sends a signal to one task, or with "" to all that run. Errors: NotFound, Conflict, Invalid.
func (r *Runner) Signal(ctx context.Context, task, signal string) error {
	names := []string{task}
	if task == "" {
		names = names[:0]
		for name := range r.Handles() {
			names = append(names, name)
		}
		if len(names) == 0 {
			return drover.Errorf(drover.Conflict, "no task of allocation %s is running", r.id)
		}
	}
	for _, name := range names {
		h, err := r.Handle(name)
		if err != nil {
			return err
		}
		e := taskmachine.NewEvent(drover.TaskSignaling, fmt.Sprintf("Task being sent signal %s", signal), "signal", signal)
		e.TaskSignal = signal
		r.send(func() { r.apply(name, taskmachine.Noted{Event: e}) })
		if err := h.Signal(ctx, signal); err != nil {
			return fmt.Errorf("signalling task %q: %w", name, err)
		}
	}
	return nil
}
