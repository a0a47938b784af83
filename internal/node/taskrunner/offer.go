package taskrunner

import (
	"context"
	"time"

	"github.com/drover-project/drover/internal/node/taskapi"
)

// offer returns the socket at which the running task reaches the agent's API: that of the hooks, or a new one in its place if an earlier
// agent started the task. nil: the task has none.
func (r *Runner) offer(ctx context.Context, w work) *taskapi.Socket {
	r.mu.Lock()
	prepared := r.prepared
	r.mu.Unlock()
	if prepared == nil && r.shared.Settings.TaskAPI != nil {
		prepared = r.request(w)
		prepared.OpenAPI(ctx, r.shared.Settings.TaskAPI)
	}
	if prepared == nil {
		return nil
	}
	return prepared.API
}

// requestGrace is how long an agent that ends waits for what a task has asked it.
const requestGrace = 5 * time.Second

// awaitRequests waits for what the task has asked of the agent, which ends.
func (r *Runner) awaitRequests(ctx context.Context, api *taskapi.Socket) {
	ctx, cancel := r.shared.Clock.WithTimeout(context.WithoutCancel(ctx), requestGrace)
	defer cancel()
	api.Wait(ctx)
}
