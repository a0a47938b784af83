package taskrunner

import (
	"context"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/localstate"
	"github.com/drover-project/drover/internal/node/taskmachine"
)

// What a job has done before a task's start can end the agent: by a fault of ours, or because the kernel ran out of
// memory. A restored task is prepared again, and so the agent would die at each of its starts. Therefore, once it died,
// all tasks that it may have been preparing then are suspected: their next preparation is stored before it begins, and
// they are prepared one after the other. If the agent dies again, the one whose preparation is stored is not tried again.
// Tasks of an agent that was stopped are not suspected, and cost nothing more than before.

// neverStarted says what becomes of a restored task that was not started: nil, it may start.
func (r *Runner) neverStarted() taskmachine.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.suspect = r.shared.Died
	if !r.record.Preparing {
		return nil
	}
	if !r.shared.Died { // it was stopped meanwhile
		r.record.Preparing = false
		r.shared.State.Queue(localstate.PutTask(r.allocID, r.name, r.record))
		return nil
	}
	return taskmachine.Kill{
		Type: drover.TaskSetupFailure, Fails: true,
		Reason: "the node's agent died twice while this task was being prepared (artifacts, templates, volumes): it is not tried again here",
	}
}

// turnPatience is how long a suspected task waits for others at most. Downloads can take long.
const turnPatience = 10 * time.Second

// underSuspicion stores that the hooks of a suspected task begin. release is to be called when they have ended.
func (r *Runner) underSuspicion(ctx context.Context) (release func(), err error) {
	release = func() {}
	r.mu.Lock()
	suspect := r.suspect
	r.mu.Unlock()
	if !suspect {
		return release, nil
	}
	patience, cancel := r.shared.Clock.WithTimeout(ctx, turnPatience)
	defer cancel()
	select {
	case r.shared.Turn <- struct{}{}:
		release = func() { <-r.shared.Turn }
	case <-patience.Done():
	}
	if err := r.change(ctx, func(t *localstate.Task) { t.Preparing = true }); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// cleared ends the suspicion: the hooks have ended, and the agent lives. When the agent ends as it should, that will be
// known. r.mu is held.
func (r *Runner) cleared(ctx context.Context) {
	r.suspect = false
	if !r.record.Preparing {
		return
	}
	r.record.Preparing = false
	if ctx.Err() == nil {
		r.shared.State.Queue(localstate.PutTask(r.allocID, r.name, r.record))
	}
}
