package alloc

import (
	"context"
	"slices"

	"github.com/spf13/pflag"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
	"github.com/drover-project/drover/internal/cli/view"
)

// chosen is an allocation and a task of it, as flags choose them: -task for the task, -job, and perhaps -group, in
// place of an allocation's id.
type chosen struct {
	task  string
	job   string
	group string // with job
}

// bind adds both flags.
func (f *chosen) bind(fl *pflag.FlagSet) {
	fl.StringVar(&f.task, "task", "", "the task; needed if there are several")
	f.bindJob(fl)
}

// bindJob adds only -job and -group, for commands that need no task.
func (f *chosen) bindJob(fl *pflag.FlagSet) {
	fl.StringVar(&f.job, "job", "", "instead of ALLOC: the newest running allocation of this job")
	fl.StringVar(&f.group, "group", "", "with -job: of this group")
}

// allocation returns the allocation, and the words that follow its id. Errors: Invalid, NotFound.
func (f *chosen) allocation(ctx context.Context, c *api.Client, args []string) (v *drover.Allocation, rest []string, err error) {
	switch {
	case f.job != "":
		v, err = newestOf(ctx, c, f.job, f.group)
		return v, args, err
	case f.group != "":
		return nil, nil, drover.Errorf(drover.Invalid, "-group goes with -job")
	case len(args) == 0:
		return nil, nil, drover.Errorf(drover.Invalid, "name an allocation, or a job with -job")
	}
	v, err = c.Allocation(ctx, args[0])
	return v, args[1:], err
}

// find returns the allocation and its task, and the words that follow the allocation's id. Errors: Invalid, NotFound.
func (f *chosen) find(ctx context.Context, c *api.Client, args []string) (v *drover.Allocation, task string, rest []string, err error) {
	if v, rest, err = f.allocation(ctx, c, args); err != nil {
		return nil, "", nil, err
	}
	task, err = taskOf(v, f.task)
	return v, task, rest, err
}

// newestOf returns the newest running allocation of the job whose id begins with prefix, of a group unless that
// is "". If none runs it is the newest of all, since the logs of a failed one are what people look for. Errors: the API's; NotFound.
func newestOf(ctx context.Context, c *api.Client, prefix, group string) (*drover.Allocation, error) {
	j, err := c.Job(ctx, prefix)
	if err != nil {
		return nil, err
	}
	var list []*drover.AllocationListStub
	if _, err := c.Get(ctx, api.JobPath(j.ID, "/allocations"), api.InNamespace(j.Namespace), &list); err != nil {
		return nil, err
	}
	if group != "" && j.Group(group) == nil {
		return nil, drover.Errorf(drover.NotFound, "job %q has no group %q", j.ID, group)
	}
	list = slices.DeleteFunc(list, func(a *drover.AllocationListStub) bool { return group != "" && a.TaskGroup != group })
	if len(list) == 0 {
		return nil, drover.Errorf(drover.NotFound, "job %q has no allocations", j.ID)
	}
	view.SortNewestFirst(list)
	i := max(slices.IndexFunc(list, func(a *drover.AllocationListStub) bool { return a.ClientStatus == drover.AllocClientRunning }), 0)
	return c.Allocation(ctx, list[i].ID)
}

// taskOf returns the task that is meant: the one with that name, or the only one. An allocation that came without its
// job cannot be checked, so any name is taken there and the node decides. Errors: Invalid if a name is needed;
// NotFound.
func taskOf(a *drover.Allocation, name string) (string, error) {
	var names []string
	if a.Job != nil {
		if g := a.Job.Group(a.TaskGroup); g != nil {
			for _, t := range g.Tasks {
				names = append(names, t.Name)
			}
		}
	}
	switch {
	case name != "" && len(names) > 0 && !slices.Contains(names, name):
		return "", drover.Errorf(drover.NotFound, "allocation %s has no task %q; it has %q", term.ShortID(a.ID), name, names)
	case name != "":
		return name, nil
	case len(names) == 1:
		return names[0], nil
	case len(names) == 0:
		return "", drover.Errorf(drover.Invalid, "name the task with -task")
	}
	return "", drover.Errorf(drover.Invalid, "allocation %s has %d tasks: choose with -task: %q", term.ShortID(a.ID), len(names), names)
}
