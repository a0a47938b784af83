package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
)

type jobRunFlags struct {
	file jobFile
	following
	print          bool
	checkIndex     int64
	priority       int
	preserveCounts bool
}

func (a *App) jobRunCommand() *cobra.Command {
	f := &jobRunFlags{}
	c := leaf("run FILE|-", "Register a job and follow its placement", 1, 1, func(ctx context.Context, args []string) error {
		return a.jobRun(ctx, f, args[0])
	})
	with(c, `Registers the job in FILE (HCL, or JSON as the API has it; - is stdin) and follows it until its tasks have started, or
until it is known why they cannot be placed. Ctrl-C stops following, not the job.

Exit codes: 0 placed, 2 the file is wrong, 4 registered but not all of it could be placed, 1 anything else, such as a task
that failed at once (with -wait: that failed at all, or a deployment that did).`, `
drover job run web.hcl
drover job run -var image=nginx:1.27 -var-file prod.vars web.hcl
drover job run -wait import.hcl && drover job run -wait web.hcl
drover job inspect web | drover job run -`)
	fl := c.Flags()
	f.file.bind(fl)
	f.following.bind(c)
	fl.BoolVar(&f.wait, "wait", false, "follow to the end: of a batch job's allocations, of a service's deployment")
	fl.BoolVar(&f.print, "output", false, "print the job as JSON instead of registering it")
	fl.Int64Var(&f.checkIndex, "check-index", -1, "register only if this is the job's modify index (0: only if it is new)")
	fl.IntVar(&f.priority, "eval-priority", 0, "priority of the evaluation; default: the job's")
	fl.BoolVar(&f.preserveCounts, "preserve-counts", false, "keep the counts that the registered job has")
	return c
}

// registered answers a registration and all else that leads to an evaluation.
type registered struct {
	EvalID         string
	JobModifyIndex uint64
	Warnings       string
}

func (a *App) jobRun(ctx context.Context, f *jobRunFlags, path string) error {
	job, source, err := f.file.read(ctx, a, path)
	if err != nil {
		return err
	}
	if f.print {
		return printJSON(a.Out, map[string]any{"Job": job})
	}
	c, err := a.asks()
	if err != nil {
		return err
	}
	body := map[string]any{"Job": job, "EvalPriority": f.priority, "PreserveCounts": f.preserveCounts, "Submission": source}
	if f.checkIndex >= 0 {
		body["EnforceIndex"], body["JobModifyIndex"] = true, f.checkIndex
	}
	var answer registered
	if err := c.put(ctx, "/v1/jobs", nil, body, &answer); err != nil {
		return err
	}
	if answer.Warnings != "" {
		fmt.Fprintf(a.Err, "Warning: %s\n", answer.Warnings)
	}
	if answer.EvalID == "" {
		return a.sayUnevaluated(job)
	}
	return a.follow(ctx, c, answer.EvalID, f.following)
}

// sayUnevaluated says why nothing is placed of a job that only makes others.
func (a *App) sayUnevaluated(job *drover.Job) error {
	what := "It is a template: 'drover job dispatch " + job.ID + "' starts one."
	if job.Periodic != nil {
		what = "It is periodic: 'drover job status " + job.ID + "' shows its launches."
	}
	_, err := fmt.Fprintf(a.Out, "Registered job %q. %s\n", job.ID, what)
	return err
}
