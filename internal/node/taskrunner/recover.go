package taskrunner

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/taskmachine"
)

// attachTries and attachWait bound how often an Attach is tried that fails without saying that the task is gone.
const (
	attachTries = 4
	attachWait  = 250 * time.Millisecond
)

// Recover finds a stored task again, and returns the event to apply: nil for a dead or never started one, and Kill for
// one that shall not be tried again. A task whose exit was stored gets that exit. It blocks while the driver looks.
func (r *Runner) Recover(ctx context.Context) taskmachine.Event {
	r.mu.Lock()
	record := r.record
	r.mu.Unlock()
	if record.Stopped {
		return nil
	}
	if len(record.Handle) == 0 && record.Intent == "" {
		return r.neverStarted()
	}
	h, err := r.attach(ctx, record.Handle, record.Intent)
	if x := record.Exit; x != nil {
		if err == nil {
			r.destroy(h)
		}
		return taskmachine.RestoredExit{Code: x.Code, Signal: x.Signal, OOMKilled: x.OOMKilled, Err: x.Err}
	}
	if err != nil && len(record.Handle) == 0 {
		r.reclaim(ctx)
		r.forgetStart() // it was never reported as running: it simply starts
		return r.neverStarted()
	}
	if err != nil {
		r.forgetStart()
		return taskmachine.RestoreFailed{Reason: err.Error()}
	}
	if len(record.Handle) == 0 { // the agent was killed between the driver's start and the storing of it
		if err := r.keepHandle(ctx, h); err != nil {
			r.shared.Log.Error("a task that was found again could not be stored", "alloc", r.allocID, "task", r.name, "error", err)
		}
	}
	r.mu.Lock()
	r.handle = h
	r.mu.Unlock()
	return taskmachine.Restored{}
}

// reclaim ends what an interrupted start may have left.
func (r *Runner) reclaim(ctx context.Context) {
	if r.shared.Reclaim == nil {
		return
	}
	if err := r.shared.Reclaim(ctx, r.dir.Task(r.name).State); err != nil {
		r.shared.Log.Error("what an interrupted start left could not be ended", "alloc", r.allocID, "task", r.name, "error", err)
	}
}

// attach asks the driver for the running task. data is the driver's own note of it; without one, the id of the intended
// start has to do, and one try is enough. Other errors than ErrGone are tried again: a supervisor may be slow to answer.
func (r *Runner) attach(ctx context.Context, data json.RawMessage, intent string) (driver.Handle, error) {
	d := r.shared.Drivers[r.work.task.Driver]
	if d == nil {
		return nil, errors.New("its driver is not on this node any more")
	}
	state := driver.State{Driver: d.Name(), ID: intent, AllocID: r.allocID, TaskName: r.name, StateDir: r.dir.Task(r.name).State}
	if len(data) > 0 {
		if err := json.Unmarshal(data, &state); err != nil {
			return nil, err
		}
	}
	for i := 0; ; i++ {
		h, err := d.Attach(ctx, state)
		if err == nil || len(data) == 0 || errors.Is(err, driver.ErrGone) || i == attachTries || ctx.Err() != nil {
			return h, err
		}
		r.shared.Log.Warn("a task could not be attached to, trying again", "alloc", r.allocID, "task", r.name, "error", err)
		clock.Sleep(ctx, r.shared.Clock, attachWait<<i)
	}
}
