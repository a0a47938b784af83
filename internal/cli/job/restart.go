package job

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/follow"
	"github.com/drover-project/drover/internal/cli/term"
	"github.com/drover-project/drover/internal/cli/view"
)

// What -batch-wait and -on-error may be beside what they say themselves.
const (
	askFirst = "ask"
	failOnce = "fail"
)

// restartFlags are the flags of "drover job restart".
type restartFlags struct {
	follow.Options
	// In words of the user: a number, or a part of all with %; a duration, or askFirst; askFirst or failOnce.
	batchSize, batchWait, onError string
	groups, tasks                 []string
	allTasks, reschedule, noDelay bool
}

// restartCommand is "drover job restart".
func restartCommand(app *term.App) *cobra.Command {
	f := &restartFlags{}
	var yes bool
	c := term.Command(app, "restart JOB", "Restart a job's allocations, some at a time", 1, 1,
		func(ctx context.Context, app *term.App, args []string) error {
			r, err := f.prepare(app, yes)
			if err != nil {
				return err
			}
			return r.run(ctx, args[0])
		})
	term.Describe(c, `
Restarts the tasks of the job's running allocations in place, so that they keep their nodes and folders, and waits until they run
again; or, with -reschedule, stops each allocation and waits until the one that replaces it has started. It is refused while a
deployment of the job is active. Ctrl-C ends it between two allocations.`, `drover job restart web
drover job restart -batch-size 25% -batch-wait 30s -group frontend web
drover job restart -reschedule web`)
	fl := c.Flags()
	fl.StringVar(&f.batchSize, "batch-size", "1", "how many allocations at a time; a number, or a part of all, such as 25%")
	fl.StringVar(&f.batchWait, "batch-wait", "0s", "how long to wait between batches; a duration, or ask")
	fl.StringVar(&f.onError, "on-error", "", "what to do when one cannot be restarted: ask or fail; default: ask at a terminal without -yes")
	fl.StringArrayVar(&f.groups, "group", nil, "only this group; can be repeated")
	fl.StringArrayVar(&f.tasks, "task", nil, "only this task; can be repeated")
	fl.BoolVar(&f.allTasks, "all-tasks", false, "tasks that ended too, such as prestart tasks")
	fl.BoolVar(&f.reschedule, "reschedule", false, "replace the allocations, in place of restarting their tasks")
	fl.BoolVar(&f.noDelay, "no-shutdown-delay", false, "with -reschedule: do not wait for shutdown_delay")
	fl.BoolVar(&yes, "yes", false, "ask nothing")
	fl.BoolVar(&f.Verbose, "verbose", false, "whole ids")
	return c
}

// prepare checks the flags. Errors: Invalid.
func (f *restartFlags) prepare(app *term.App, yes bool) (*restart, error) {
	r := &restart{app: app, flags: f}
	mayAsk := app.Console() != nil && !yes
	switch {
	case f.onError == "":
		r.asks = mayAsk
	case f.onError == askFirst:
		r.asks = true
	case f.onError != failOnce:
		return nil, drover.Errorf(drover.Invalid, "-on-error %q: want %s or %s", f.onError, askFirst, failOnce)
	}
	if f.batchWait != askFirst {
		var err error
		if r.wait, err = time.ParseDuration(f.batchWait); err != nil || r.wait < 0 {
			return nil, drover.Errorf(drover.Invalid, "-batch-wait %q: want a duration, such as 30s, or %s", f.batchWait, askFirst)
		}
	}
	if (f.onError == askFirst || f.batchWait == askFirst) && !mayAsk {
		return nil, drover.Errorf(drover.Invalid, "-on-error %s and -batch-wait %[1]s need a terminal, and go without -yes", askFirst)
	}
	if f.reschedule && (f.allTasks || len(f.tasks) > 0) {
		return nil, drover.Errorf(drover.Invalid, "-reschedule replaces whole allocations: it goes without -task and -all-tasks")
	}
	if f.allTasks && len(f.tasks) > 0 {
		return nil, drover.Errorf(drover.Invalid, "-all-tasks and -task cannot be given together")
	}
	if f.noDelay && !f.reschedule {
		return nil, drover.Errorf(drover.Invalid, "-no-shutdown-delay goes with -reschedule only")
	}
	if _, err := batch(f.batchSize, 1); err != nil {
		return nil, err
	}
	return r, nil
}

// batch reads how many of all allocations are restarted at a time: at least one. Errors: Invalid.
func batch(text string, all int) (int, error) {
	digits, percent := strings.CutSuffix(text, "%")
	n, err := strconv.Atoi(digits)
	if err != nil || n < 1 || percent && n > 100 {
		return 0, drover.Errorf(drover.Invalid, "-batch-size %q: want a number of 1 or more, or a part from 1%% to 100%%", text)
	}
	if percent {
		n = max(1, all*n/100)
	}
	return n, nil
}

// restart is one run of the command. It belongs to one goroutine.
type restart struct {
	app   *term.App
	api   *api.Client
	flags *restartFlags
	job   *drover.Job

	asks bool // when one cannot be restarted
	wait time.Duration
}

// run restarts batch after batch. Errors: the API's; NotFound, Conflict; Canceled; a plain one if some could not be restarted.
func (r *restart) run(ctx context.Context, prefix string) (err error) {
	if r.api, err = r.app.Nomad(); err != nil {
		return err
	}
	if r.job, err = r.api.Job(ctx, prefix); err != nil {
		return err
	}
	list, err := r.allocations(ctx)
	if err != nil {
		return err
	}
	size, err := batch(r.flags.batchSize, len(list))
	if err != nil {
		return err
	}
	done, failed := 0, 0
	for from := 0; from < len(list); from += size {
		if from > 0 {
			if err := r.pause(ctx); err != nil {
				return fmt.Errorf("%w; %d of %d allocations were restarted", err, done, len(list))
			}
		}
		some := list[from:min(from+size, len(list))]
		fmt.Fprintf(r.app.Out, "==> Restarting %d to %d of %s\n", from+1, from+len(some), term.Plural(len(list), "allocation"))
		for _, err := range r.restart(ctx, some) {
			switch {
			case err == nil:
				done++
				continue
			case ctx.Err() != nil:
				return fmt.Errorf("%w; %d of %d allocations were restarted", err, done, len(list))
			}
			failed++
			fmt.Fprintf(r.app.Err, "    %v\n", err)
		}
		if failed > 0 {
			if err := r.goOn(ctx); err != nil {
				return fmt.Errorf("%w; %d of %d allocations were restarted", err, done, len(list))
			}
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d allocations could not be restarted", failed, len(list))
	}
	_, err = fmt.Fprintf(r.app.Out, "==> Restarted %s of job %q\n", term.Plural(done, "allocation"), r.job.ID)
	return err
}

// allocations returns what is to be restarted, the oldest first. Errors: NotFound for a group or task that the job has not, or
// if nothing runs; Conflict while a deployment is active.
func (r *restart) allocations(ctx context.Context) ([]*drover.AllocationListStub, error) {
	if err := r.named(); err != nil {
		return nil, err
	}
	d, err := latestDeployment(ctx, r.api, r.job)
	if err != nil {
		return nil, err
	}
	if d != nil && d.Active() {
		return nil, drover.Errorf(drover.Conflict, "deployment %s of job %q is %s: wait for its end, or end it with 'drover deployment fail'",
			term.ShortID(d.ID), r.job.ID, d.Status)
	}
	var list []*drover.AllocationListStub
	if _, err := r.api.Get(ctx, api.JobPath(r.job.ID, "/allocations"), api.InNamespace(r.job.Namespace), &list); err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(a *drover.AllocationListStub) bool {
		return a.ClientStatus != drover.AllocClientRunning || a.DesiredStatus != drover.AllocDesiredRun ||
			len(r.flags.groups) > 0 && !slices.Contains(r.flags.groups, a.TaskGroup) ||
			len(r.flags.tasks) > 0 && len(r.tasksOf(a)) == 0
	})
	if len(list) == 0 {
		return nil, drover.Errorf(drover.NotFound, "no such allocation of job %q runs", r.job.ID)
	}
	view.SortNewestFirst(list)
	slices.Reverse(list)
	return list, nil
}

// named checks that the job has the groups and tasks that flags name.
func (r *restart) named() error {
	var tasks []string
	for _, g := range r.job.TaskGroups {
		for _, t := range g.Tasks {
			tasks = append(tasks, t.Name)
		}
	}
	for _, name := range r.flags.groups {
		if r.job.Group(name) == nil {
			return drover.Errorf(drover.NotFound, "job %q has no group %q", r.job.ID, name)
		}
	}
	for _, name := range r.flags.tasks {
		if !slices.Contains(tasks, name) {
			return drover.Errorf(drover.NotFound, "job %q has no task %q; it has %q", r.job.ID, name, tasks)
		}
	}
	return nil
}

// tasksOf returns the chosen tasks that an allocation has.
func (r *restart) tasksOf(a *drover.AllocationListStub) (tasks []string) {
	for _, name := range r.flags.tasks {
		if a.TaskStates[name] != nil {
			tasks = append(tasks, name)
		}
	}
	return tasks
}

// restart restarts some allocations and returns what came of each. All are asked for before the first is waited for.
func (r *restart) restart(ctx context.Context, some []*drover.AllocationListStub) []error {
	errs, evals := make([]error, len(some)), make([]string, len(some))
	for i, a := range some {
		fmt.Fprintf(r.app.Out, "    Allocation %s (%s)\n", r.id(a.ID), a.Name)
		if !r.flags.reschedule {
			errs[i] = r.inPlace(ctx, a)
			continue
		}
		q := url.Values{"no_shutdown_delay": {strconv.FormatBool(r.flags.noDelay)}, "reschedule": {"true"}}
		var o drover.Outcome
		errs[i] = r.api.Put(ctx, "/v1/allocation/"+a.ID+"/stop", q, nil, &o)
		evals[i] = o.EvalID
	}
	for i, eval := range evals {
		switch {
		case errs[i] != nil:
		case !r.flags.reschedule:
			errs[i] = r.started(ctx, some[i])
		case eval != "":
			errs[i] = follow.Evaluation(ctx, r.app, r.api, eval, r.flags.Options)
		}
		if errs[i] != nil {
			errs[i] = fmt.Errorf("allocation %s: %w", r.id(some[i].ID), errs[i])
		}
	}
	return errs
}

// inPlace has an allocation's node restart its tasks: those that were chosen, or all.
func (r *restart) inPlace(ctx context.Context, a *drover.AllocationListStub) error {
	tasks := r.tasksOf(a)
	if len(tasks) == 0 {
		tasks = []string{""} // all
	}
	for _, task := range tasks {
		body := map[string]any{"TaskName": task, "AllTasks": r.flags.allTasks}
		if err := r.api.Put(ctx, "/v1/client/allocation/"+a.ID+"/restart", nil, body, nil); err != nil {
			return err
		}
	}
	return nil
}

// started waits until the tasks of an allocation that were to be restarted, and ran, run again; those that have ended since, as
// tasks of a batch do, count too. Errors: the API's; a plain one if the allocation has failed.
func (r *restart) started(ctx context.Context, a *drover.AllocationListStub) error {
	var index uint64
	for {
		var now drover.Allocation
		next, err := r.api.Get(ctx, "/v1/allocation/"+a.ID, api.Blocking(api.InNamespace(a.Namespace), index), &now)
		if err != nil {
			return err
		}
		index = next
		if now.ClientStatus == drover.AllocClientFailed || now.ClientStatus == drover.AllocClientLost {
			return fmt.Errorf("it is %s", now.ClientStatus)
		}
		waits := false
		for name, before := range a.TaskStates {
			s := now.TaskStates[name]
			if before.State != drover.TaskStateRunning || s == nil || len(r.flags.tasks) > 0 && !slices.Contains(r.flags.tasks, name) {
				continue
			}
			waits = waits || !s.StartedAt.After(before.StartedAt) && s.State != drover.TaskStateDead
		}
		if !waits {
			return nil
		}
	}
}

// id is an allocation's id for people.
func (r *restart) id(id string) string {
	o := term.Output{Verbose: r.flags.Verbose}
	return o.ID(id)
}

// pause waits between two batches. Errors: Canceled, also if the user wants no more.
func (r *restart) pause(ctx context.Context) error {
	if r.flags.batchWait == askFirst {
		return r.app.Confirm(ctx, "Go on with the next batch?")
	}
	timer := r.app.Clock.NewTimer(r.wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return drover.Errorf(drover.Canceled, "%w", context.Cause(ctx))
	case <-timer.C():
		return nil
	}
}

// goOn asks whether to go on after some could not be restarted. Errors: a plain one if not.
func (r *restart) goOn(ctx context.Context) error {
	if !r.asks {
		return fmt.Errorf("it stops at the first allocation that cannot be restarted")
	}
	return r.app.Confirm(ctx, "Go on nevertheless?")
}
