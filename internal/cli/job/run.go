package job

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/follow"
	"github.com/drover-project/drover/internal/cli/term"
)

// runFlags are the flags of "drover job run".
type runFlags struct {
	file file
	follow.Options
	// The job is only printed as JSON (-output); nothing is sent.
	print bool
	// The job's modify index that the server must find; negative: any.
	checkIndex int64
	// Of the evaluation, not of the job; 0 is the job's.
	priority int
	// Counts of the registered job stay, as those of groups that an autoscaler steers.
	preserveCounts bool
	// So do resources, as those of tasks that an autoscaler sizes.
	preserveResources bool
}

// runCommand is "drover job run". It follows the placement unless -detach is given, and with -wait the work itself.
func runCommand(app *term.App) *cobra.Command {
	f := &runFlags{}
	run := func(ctx context.Context, app *term.App, args []string) error {
		return run(ctx, app, f, args[0])
	}
	c := term.Command(app, "run FILE|-", "Register a job and follow its placement", 1, 1, run)
	term.Describe(c, `Registers the job in FILE (HCL, or JSON as the API has it; - is stdin) and follows it until its tasks have started, or
until it is known why they cannot be placed. With -wait it says why, and waits for room, such as a first node, for -place-within. A driver
that no node has is not waited for, unless a pool of the fleet may bring one that has it. Ctrl-C stops following, not the job.

Exit codes: 0 placed, 2 the file is wrong, 4 registered but not all of it could be placed, 1 anything else, such as a task
that failed at once (with -wait: that failed at all, or a deployment that did).`, `
drover job run web.hcl
drover job run -var image=nginx:1.27 -var-file prod.vars web.hcl
drover job run -wait import.hcl && drover job run -wait web.hcl
drover job inspect web | drover job run -`)
	fl := c.Flags()
	f.file.bind(fl)
	f.Options.Bind(c)
	fl.BoolVar(&f.Wait, "wait", false, "follow to the end: of a batch job's allocations, of a service's deployment")
	fl.DurationVar(&f.PlaceWithin, "place-within", 5*time.Minute,
		"how long -wait waits for room for what cannot be placed yet; 0: exit with 4 at once")
	fl.BoolVar(&f.print, "output", false, "print the job as JSON instead of registering it")
	fl.Int64Var(&f.checkIndex, "check-index", -1, "register only if this is the job's modify index (0: only if it is new)")
	fl.IntVar(&f.priority, "eval-priority", 0, "priority of the evaluation; default: the job's")
	fl.BoolVar(&f.preserveCounts, "preserve-counts", false, "keep the counts that the registered job has")
	fl.BoolVar(&f.preserveResources, "preserve-resources", false, "keep the resources that the tasks of the registered job have")
	return c
}

// run registers the job and follows its evaluation. Errors: Invalid for the file; the API's, Conflict if -check-index
// does not match; those of follow.Evaluation.
func run(ctx context.Context, app *term.App, f *runFlags, path string) error {
	job, source, err := f.file.read(ctx, app, path)
	if err != nil {
		return err
	}
	if f.print {
		return term.PrintJSON(app.Out, map[string]any{"Job": job})
	}
	c, err := app.Nomad()
	if err != nil {
		return err
	}
	body := drover.RegisterRequest{Job: job, EvalPriority: f.priority, PreserveCounts: f.preserveCounts, Submission: source}
	body.PreserveResources = f.preserveResources
	// Index 0 is enforced too: it demands that the job is new.
	if f.checkIndex >= 0 {
		body.EnforceIndex, body.JobModifyIndex = true, uint64(f.checkIndex)
	}
	var answer drover.Outcome
	if err := c.Put(ctx, "/v1/jobs", nil, body, &answer); err != nil {
		return err
	}
	if answer.Warnings != "" {
		fmt.Fprintf(app.Err, "Warning: %s\n", answer.Warnings)
	}
	// Periodic and parameterized jobs get no evaluation of their own: only their children do.
	if answer.EvalID == "" {
		return explainUnevaluated(app, job)
	}
	return follow.Evaluation(ctx, app, c, answer.EvalID, f.Options)
}

// explainUnevaluated says why nothing is placed of a job that only starts others: a periodic or a parameterized one.
func explainUnevaluated(app *term.App, job *drover.Job) error {
	what := "It is a template: 'drover job dispatch " + job.ID + "' starts one."
	if job.Periodic != nil {
		what = "It is periodic: 'drover job status " + job.ID + "' shows its launches."
	}
	_, err := fmt.Fprintf(app.Out, "Registered job %q. %s\n", job.ID, what)
	return err
}
