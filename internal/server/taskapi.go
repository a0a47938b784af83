package server

import (
	"net/http"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/node/taskapi"
)

// errAnonymous is the refusal of who shows no token where one is needed whatever the configuration.
var errAnonymous = drover.Errorf(drover.Unauthorized, "the task API needs a token")

// What the bodies of tasks' requests hold in memory: those of one task, and those of all tasks of this node together, in bytes.
const (
	taskBodies = 16 << 20
	allBodies  = 64 << 20
)

// taskAPI is what offers the tasks of this process's node its faces.
func (a *Agent) taskAPI() *taskapi.API {
	faces := httpapi.NewHeld(taskBodies, allBodies).Handler(http.HandlerFunc(a.answerTask))
	return taskapi.New(taskapi.Deps{
		Handler: faces, Admit: a.admitTask, Clock: a.deps.Clock, Log: a.deps.Log.With("part", "task api"),
		Refused: a.refusals().Task,
	})
}

// answerTask answers a task whose token is known.
func (a *Agent) answerTask(w http.ResponseWriter, r *http.Request) {
	faces, err := a.handler()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	faces.ServeHTTP(w, r)
}

// admitTask says why a task's token is nobody's. That is asked also where access control is off: then the agent's port is open to who comes
// to it, and a task's sandbox may be there to keep it from that.
func (a *Agent) admitTask(r *http.Request) error {
	secret := acl.Secret(httpapi.Token(r))
	if secret == "" {
		return errAnonymous
	}
	if _, err := a.handler(); err != nil { // which makes the relay
		return err
	}
	if a.control != nil {
		_, err := a.control.tokens.Resolve(secret)
		return err
	}
	_, err := a.joined.known.Resolve(secret)
	return err
}
