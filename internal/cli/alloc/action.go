package alloc

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/coder/websocket"
	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
	"github.com/drover-project/drover/internal/cli/view"
)

// actionFlags are the flags of "drover job action": chosen's task, job and group, and what else narrows the choice.
type actionFlags struct {
	execFlags
	allocation string
}

// place is an action and where it is.
type place struct{ Name, TaskName, TaskGroupName string }

// ActionCommand is "drover job action", which lives here since it is exec with a command that the job names.
func ActionCommand(app *term.App) *cobra.Command {
	f := &actionFlags{}
	var tty, noTTY bool
	c := term.Command(app, "action NAME", "Run an action of a job in one of its tasks", 1, 1,
		func(ctx context.Context, app *term.App, args []string) error {
			t := app.Console()
			f.tty = tty || t != nil && !noTTY
			return action(ctx, app, f, t, args[0])
		})
	term.Describe(c, `Runs the command that the job file names in an action block, in a running task, and exits with its code. Without
-allocation it is the newest running allocation of the group. 'drover job actions JOB' lists a job's actions.

`+term.EscapeHelp, `drover job action -job shop flush-cache
drover job action -job shop -group db -task postgres -allocation 3f2a vacuum`)
	fl := c.Flags()
	fl.StringVar(&f.task, "task", "", "the task; needed if several have such an action")
	fl.StringVar(&f.job, "job", "", "the job; needed without -allocation")
	fl.StringVar(&f.group, "group", "", "the group; needed if several have such an action")
	fl.StringVar(&f.allocation, "allocation", "", "the allocation; default: the newest that runs")
	fl.BoolVarP(&f.stdin, "stdin", "i", true, "hand on stdin")
	fl.BoolVarP(&tty, "tty", "t", false, "give the command a terminal; default: if there is one here")
	fl.BoolVarP(&noTTY, "no-tty", "T", false, "give it none")
	f.escape.Bind(fl)
	return c
}

// ActionsCommand is "drover job actions".
func ActionsCommand(app *term.App) *cobra.Command {
	o := &term.Output{}
	c := term.NomadCommand(app, "actions JOB", "List a job's actions", 1, 1, func(ctx context.Context, c *api.Client, args []string) error {
		j, err := c.Job(ctx, args[0])
		if err != nil {
			return err
		}
		list := []place{}
		if _, err := c.Get(ctx, api.JobPath(j.ID, "/actions"), api.InNamespace(j.Namespace), &list); err != nil {
			return err
		}
		if done, err := o.Data(app.Out, list); done {
			return err
		}
		var rows [][]string
		for _, a := range list {
			rows = append(rows, []string{a.Name, a.TaskGroupName, a.TaskName})
		}
		return term.Table(app.Out, "The job has no actions.", "Action|Group|Task", rows)
	})
	o.Bind(c.Flags())
	return c
}

// action finds the allocation and the task, and runs the session. Errors: those of findAction, dial and run.
func action(ctx context.Context, app *term.App, f *actionFlags, t *term.Console, name string) error {
	c, err := app.Nomad()
	if err != nil {
		return err
	}
	a, at, err := findAction(ctx, c, f, name)
	if err != nil {
		return err
	}
	q := api.InNamespace(a.Namespace)
	for key, value := range map[string]string{
		"action": name, "allocID": a.ID, "group": at.TaskGroupName, "task": at.TaskName, "tty": strconv.FormatBool(f.tty),
	} {
		q.Set(key, value)
	}
	conn, err := dial(ctx, c, api.JobPath(a.JobID, "/action"), q)
	if err != nil {
		return err
	}
	x := &session{app: app, conn: conn}
	return x.run(ctx, &f.execFlags, t)
}

// findAction returns the allocation, and the action that is meant. Errors: Invalid if something more must be named; NotFound.
func findAction(ctx context.Context, c *api.Client, f *actionFlags, name string) (a *drover.Allocation, at place, err error) {
	switch {
	case f.allocation != "":
		if a, err = c.Allocation(ctx, f.allocation); err != nil {
			return nil, at, err
		}
		if a.Job == nil || f.job != "" && a.JobID != f.job || f.group != "" && a.TaskGroup != f.group {
			return nil, at, drover.Errorf(drover.NotFound, "allocation %s is of group %q of job %q", term.ShortID(a.ID), a.TaskGroup, a.JobID)
		}
		at, err = only(a.Job, name, a.TaskGroup, f.task)
		return a, at, err
	case f.job == "":
		return nil, at, drover.Errorf(drover.Invalid, "name a job with -job, or an allocation with -allocation")
	}
	j, err := c.Job(ctx, f.job)
	if err != nil {
		return nil, at, err
	}
	if at, err = only(j, name, f.group, f.task); err != nil {
		return nil, at, err
	}
	var list []*drover.AllocationListStub
	if _, err := c.Get(ctx, api.JobPath(j.ID, "/allocations"), api.InNamespace(j.Namespace), &list); err != nil {
		return nil, at, err
	}
	view.SortNewestFirst(list)
	i := slices.IndexFunc(list, func(s *drover.AllocationListStub) bool {
		return s.ClientStatus == drover.AllocClientRunning && s.TaskGroup == at.TaskGroupName
	})
	if i < 0 {
		return nil, at, drover.Errorf(drover.NotFound, "no allocation of group %q of job %q runs", at.TaskGroupName, j.ID)
	}
	a, err = c.Allocation(ctx, list[i].ID)
	return a, at, err
}

// only returns the one action of the job with the name, in the group and task if these are named. Errors: NotFound; Invalid
// if there are several.
func only(j *drover.Job, name, group, task string) (place, error) {
	var found []place
	var all []string
	for _, g := range j.TaskGroups {
		for _, t := range g.Tasks {
			for _, a := range t.Actions {
				all = append(all, a.Name)
				if a.Name == name && (group == "" || group == g.Name) && (task == "" || task == t.Name) {
					found = append(found, place{a.Name, t.Name, g.Name})
				}
			}
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return place{}, drover.Errorf(drover.NotFound, "job %q has no action %q there; it has %q", j.ID, name, all)
	}
	var where []string
	for _, p := range found {
		where = append(where, p.TaskGroupName+"/"+p.TaskName)
	}
	return place{}, drover.Errorf(drover.Invalid, "several tasks of job %q have action %q: choose with -group and -task: %s",
		j.ID, name, strings.Join(where, ", "))
}

// dial opens a WebSocket of Nomad's API. Errors: those of Unreachable.
func dial(ctx context.Context, c *api.Client, path string, q url.Values) (*websocket.Conn, error) {
	o := &websocket.DialOptions{HTTPClient: c.HTTP, HTTPHeader: map[string][]string{}}
	c.Authorize(o.HTTPHeader)
	address := "ws" + strings.TrimPrefix(c.Url(path, q), "http") // https → wss
	conn, _, err := websocket.Dial(ctx, address, o)              // the library closes it
	if err != nil {
		return nil, c.Unreachable(ctx, err)
	}
	// The library's limit of 32 KiB is less than one frame of output may be.
	conn.SetReadLimit(16 << 20)
	return conn, nil
}
