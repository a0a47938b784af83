package taskrunner

import (
	"context"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/localstate"
	"github.com/drover-project/drover/internal/node/taskmachine"
)

// What a job asks for before its task starts (artifacts, templates) can kill the agent: by a fault of ours, or because the
// machine runs out of memory. A restored task is prepared again, so the agent would die at each of its starts. Therefore,
// once the agent has died, it suspects all tasks that it may have been preparing. It stores that a preparation begins before
// it does, and prepares suspects one after the other. If the agent dies again, the task whose preparation is stored is not
// tried any more. After an orderly stop no task is suspected, and nothing more is stored.

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

// underSuspicion stores that the hooks of a suspected task begin, when its turn comes or turnPatience is over. The caller calls
// release when they have ended.
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
