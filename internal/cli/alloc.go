package cli

import (
	"context"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/drover-project/drover"
)

func (a *App) allocCommand() *cobra.Command {
	return group("alloc", "Look into allocations, and run things in them",
		a.allocStatusCommand(), a.allocLogsCommand(), a.allocExecCommand(), a.allocFSCommand(),
		a.allocStopCommand(), a.allocRestartCommand(), a.allocSignalCommand())
}

// chosen is an allocation and a task of it, as flags choose them.
type chosen struct {
	task string
	job  string
}

func (f *chosen) bind(fl *pflag.FlagSet) {
	fl.StringVar(&f.task, "task", "", "the task; needed if there are several")
	fl.StringVar(&f.job, "job", "", "instead of ALLOC: the newest running allocation of this job")
}

// find returns the allocation and task, and the words that follow the allocation's id.
func (f *chosen) find(ctx context.Context, c *api, args []string) (*drover.Allocation, string, []string, error) {
	var alloc *drover.Allocation
	var err error
	switch {
	case f.job != "":
		alloc, err = c.newestOf(ctx, f.job)
	case len(args) == 0:
		err = drover.Errorf(drover.Invalid, "name an allocation, or a job with -job")
	default:
		alloc, err = c.alloc(ctx, args[0])
		args = args[1:]
	}
	if err != nil {
		return nil, "", nil, err
	}
	task, err := taskOf(alloc, f.task)
	return alloc, task, args, err
}

// newestOf is the newest running allocation of a job, else the newest.
func (c *api) newestOf(ctx context.Context, prefix string) (*drover.Allocation, error) {
	j, err := c.job(ctx, prefix)
	if err != nil {
		return nil, err
	}
	var list []*drover.AllocationListStub
	if _, err := c.get(ctx, jobPath(j.ID, "/allocations"), inNamespace(j.Namespace), &list); err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, drover.Errorf(drover.NotFound, "job %q has no allocations", j.ID)
	}
	newestFirst(list)
	i := max(slices.IndexFunc(list, func(a *drover.AllocationListStub) bool { return a.ClientStatus == drover.AllocClientRunning }), 0)
	return c.alloc(ctx, list[i].ID)
}

// taskOf checks the task's name, or takes the only one. Errors: Invalid, NotFound.
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
		return "", drover.Errorf(drover.NotFound, "allocation %s has no task %q; it has %q", short(a.ID), name, names)
	case name != "":
		return name, nil
	case len(names) == 1:
		return names[0], nil
	case len(names) == 0:
		return "", drover.Errorf(drover.Invalid, "name the task with -task")
	}
	return "", drover.Errorf(drover.Invalid, "allocation %s has %d tasks: choose with -task: %q", short(a.ID), len(names), names)
}
