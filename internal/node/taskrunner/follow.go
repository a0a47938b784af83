package taskrunner

import (
	"context"
	"fmt"
	"math/bits"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/checks"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/hook"
	"github.com/drover-project/drover/internal/node/localstate"
	"github.com/drover-project/drover/internal/node/taskmachine"
)

// follow has the task's templates rendered anew while it runs, until the returned function is called.
func (r *Runner) follow(ctx context.Context, w work, h driver.Handle) (end func()) {
	r.mu.Lock()
	var live *hook.Live
	seen, restored := r.record.Templates, r.prepared == nil
	if !restored {
		live = r.prepared.Live
	}
	r.mu.Unlock()
	if len(seen) == 0 && !firstScripts(w.task) {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	clock.Go(r.shared.Clock, func() { // ends with ctx
		defer close(done)
		k := &follower{r, w.task, h}
		if restored {
			live = hook.Restore(ctx, r.shared.Settings, r.request(w), seen)
		} else if !k.begin(ctx) {
			live.Close()
			return
		}
		if live != nil && len(seen) > 0 {
			live.Run(ctx, k, r.splay)
		}
	})
	return func() {
		cancel()
		<-done
	}
}

// firstScripts reports whether a script runs after the first rendering.
func firstScripts(t *drover.Task) bool {
	for _, tmpl := range t.Templates {
		if tmpl.ChangeMode == "script" && tmpl.ChangeScript != nil && tmpl.ChangeScript.RunOnFirstRender {
			return true
		}
	}
	return false
}

// splay is a number in [0, 1) that differs between tasks and moments.
func (r *Runner) splay() float64 {
	return float64(bits.Reverse32(uint32(r.shared.Clock.Now().UnixNano()))^uint32(r.jitter()*(1<<32))) / (1 << 32)
}

// follower does to the task what its templates' changes ask for.
type follower struct {
	runner *Runner
	task   *drover.Task
	handle driver.Handle
}

// begin runs the scripts that run after the first rendering.
func (f *follower) begin(ctx context.Context) (goOn bool) {
	for _, t := range f.task.Templates {
		if t.ChangeMode == "script" && t.ChangeScript != nil && t.ChangeScript.RunOnFirstRender && !f.script(ctx, t.ChangeScript) {
			return false
		}
	}
	return true
}

// Rendered implements hook.Keeper: a restored task does not render again what it has.
func (f *follower) Rendered(ctx context.Context, l *hook.Live) {
	seen := l.Record()
	err := f.runner.change(ctx, func(t *localstate.Task) { t.Templates = seen })
	if err != nil && ctx.Err() == nil {
		f.runner.shared.Log.Error("what a task's templates have seen could not be stored", "alloc", f.runner.allocID, "task", f.runner.name,
			"error", err)
	}
}

// Changed implements hook.Keeper.
func (f *follower) Changed(ctx context.Context, c hook.Change) (goOn bool) {
	if c.Restart {
		f.runner.post(taskmachine.Restart{Reason: "Template with change_mode restart re-rendered"})
		return false
	}
	for _, signal := range c.Signals {
		e := taskmachine.NewEvent(drover.TaskSignaling, "Template re-rendered", "signal", signal)
		e.TaskSignal = signal
		f.runner.post(taskmachine.Noted{Event: e})
		if err := f.handle.Signal(ctx, signal); err != nil && ctx.Err() == nil {
			f.kill(fmt.Sprintf("Template failed to send signal %s: %v", signal, err))
			return false
		}
	}
	for _, s := range c.Scripts {
		if !f.script(ctx, s) {
			return false
		}
	}
	return true
}

func (f *follower) kill(reason string) {
	f.runner.post(taskmachine.Kill{Type: drover.TaskTemplate, Reason: reason, Fails: true})
}

// defaultScriptTime is how long a script may take that says nothing of it.
const defaultScriptTime = 5 * time.Second

// script runs a change_script in the task, and tells how it ended.
func (f *follower) script(ctx context.Context, s *drover.ChangeScript) (goOn bool) {
	limit := s.Timeout
	if limit <= 0 {
		limit = defaultScriptTime
	}
	code, output, ok := checks.Script(ctx, f.handle, &checks.Check{Command: s.Command, Args: s.Args, Timeout: limit, Task: f.task.Name})
	if ctx.Err() != nil {
		return false
	}
	what := fmt.Sprintf("Template ran script %s with arguments %v on change", s.Command, s.Args)
	if ok || code != 0 { // what was killed, or never began, has none
		what += fmt.Sprintf(". Exit code: %d", code)
	}
	if !ok && output != "" {
		what += ": " + output
	}
	if !ok && s.FailOnError {
		f.kill(what)
		return false
	}
	f.runner.post(taskmachine.Noted{Event: taskmachine.NewEvent(drover.TaskTemplate, what)})
	return true
}
