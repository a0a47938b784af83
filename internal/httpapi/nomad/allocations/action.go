package allocations

import (
	"net/http"

	"github.com/drover-project/drover"
)

// runAction answers the websocket GET /v1/job/ID/action: as exec, with the command that the job's action names. The query's
// allocID, task and action say where and what.
func (f *face) runAction(w http.ResponseWriter, r *http.Request) error {
	return f.answerExec(w, r, wanted{r.URL.Query().Get("allocID"), actionOf})
}

// actionOf is the command of the query's action, as the allocation's own version of the job has it: a newer version may not
// fit what runs. A command that the query brings is not looked at. Nothing is interpolated: the action runs with its task's environment,
// so a shell in it finds all of the task's variables.
func actionOf(r *http.Request, a *drover.Allocation, task string) ([]string, error) {
	name := r.URL.Query().Get("action")
	if name == "" {
		return nil, drover.Errorf(drover.Invalid, "action is not present: name one of the job's")
	}
	if id := r.PathValue("id"); a.JobID != id {
		return nil, drover.Errorf(drover.NotFound, "allocation %q not found in job %q", a.ID, id)
	}
	if group := r.URL.Query().Get("group"); group != "" && group != a.TaskGroup {
		return nil, drover.Errorf(drover.Invalid, "group is %q: the allocation is of group %q", group, a.TaskGroup)
	}
	if a.Job != nil {
		if g := a.Job.Group(a.TaskGroup); g != nil && g.Task(task) != nil {
			for _, x := range g.Task(task).Actions {
				if x.Name == name {
					return append([]string{x.Command}, x.Args...), nil
				}
			}
		}
	}
	return nil, drover.Errorf(drover.NotFound, "action %q not found in task %q of the allocation's version of the job", name, task)
}
