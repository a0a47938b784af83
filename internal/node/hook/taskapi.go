package hook

import (
	"context"
	"path/filepath"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/taskapi"
	"github.com/drover-project/drover/internal/node/taskmachine"
)

// taskAPI offers the task the agent's API, in its folder for secrets.
type taskAPI struct{ api *taskapi.API }

func (taskAPI) Name() string { return "api" }

// Once is false: a socket lasts no longer than the agent that listens at it.
func (taskAPI) Once() bool { return false }

// Prestart opens the socket and has the task know its address.
func (h taskAPI) Prestart(ctx context.Context, r *Request) error {
	if r.OpenAPI(ctx, h.api); r.API != nil {
		r.Env = r.Env.With(map[string]string{"NOMAD_UNIX_ADDR": "unix://" + filepath.Join(r.Dirs.Secrets, taskapi.Name)})
	}
	return nil
}

// OpenAPI opens the task's socket; Close closes it. Warm runners have none, as what runs in them has no identity of a task, nor have tasks
// without folders. A socket that cannot be made keeps no task from running: its history says why.
func (r *Request) OpenAPI(ctx context.Context, api *taskapi.API) {
	if api == nil || r.Group.Pool != nil || !r.Dir.TaskBuilt(r.Task.Name) {
		return
	}
	user, known := r.owner()
	if !known {
		user = taskapi.Anybody
	}
	var err error
	r.API, err = api.Open(ctx, taskapi.Task{AllocID: r.Alloc.ID, Name: r.Task.Name, Folder: r.Dirs.Secrets, User: user})
	if err != nil {
		r.Emit(taskmachine.NewEvent(drover.TaskSetup, "The task has no socket of the task API: "+err.Error()))
	}
}

// Close ends what outlives the hooks: the following of templates, and the socket. Idempotent.
func (r *Request) Close() {
	r.Live.Close()
	r.API.Close()
}
