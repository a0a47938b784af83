package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
)

type jobPlanFlags struct {
	file     jobFile
	diff     bool
	detailed bool
	verbose  bool
}

func (a *App) jobPlanCommand() *cobra.Command {
	f := &jobPlanFlags{}
	c := leaf("plan FILE|-", "Show what registering a job would do", 1, 1, func(ctx context.Context, args []string) error {
		return a.jobPlan(ctx, f, args[0])
	})
	with(c, `Shows the difference to the registered job and what the scheduler would do. Nothing is changed.

Exit codes: 0, with -detailed-exitcode 1 if allocations would be created or destroyed; 4 if not all could be placed;
2 the file is wrong.`, "drover job plan web.hcl\ndrover job plan -var count=3 web.hcl")
	f.file.bind(c.Flags())
	c.Flags().BoolVar(&f.diff, "diff", true, "show the difference")
	c.Flags().BoolVar(&f.detailed, "detailed-exitcode", false, "exit with 1 if allocations would be created or destroyed")
	c.Flags().BoolVar(&f.verbose, "verbose", false, "show what stays the same too")
	return c
}

type planned struct {
	JobModifyIndex     uint64
	Diff               *drover.JobDiff
	Annotations        *drover.PlanAnnotations
	FailedTGAllocs     map[string]*drover.AllocationMetric
	NextPeriodicLaunch time.Time
	Warnings           string
}

func (a *App) jobPlan(ctx context.Context, f *jobPlanFlags, path string) error {
	job, _, err := f.file.read(ctx, a, path)
	if err != nil {
		return err
	}
	c, err := a.asks()
	if err != nil {
		return err
	}
	var p planned
	if err := c.put(ctx, jobPath(job.ID, "/plan"), nil, map[string]any{"Job": job, "Diff": f.diff}, &p); err != nil {
		return err
	}
	if p.Diff != nil {
		(&differ{w: a.Out, all: f.verbose}).job(p.Diff)
		fmt.Fprintln(a.Out)
	}
	a.dryRun(&p)
	if p.Warnings != "" {
		fmt.Fprintf(a.Out, "\nWarnings: %s\n", p.Warnings)
	}
	fmt.Fprintf(a.Out, "\nJob modify index: %d\nTo register it only if nobody changes the job meanwhile:\n\n    drover job run -check-index %[1]d %s\n", p.JobModifyIndex, path)
	switch {
	case len(p.FailedTGAllocs) > 0:
		return &exitError{code: exitNoPlace}
	case f.detailed && p.changes():
		return &exitError{code: exitFailure}
	}
	return nil
}

func (a *App) dryRun(p *planned) {
	fmt.Fprintln(a.Out, "Scheduler dry-run:")
	if len(p.FailedTGAllocs) == 0 {
		fmt.Fprintln(a.Out, "- All tasks successfully allocated.")
	} else {
		fmt.Fprintln(a.Out, "- Not everything can be placed:")
		explain(a.Out, "  ", p.FailedTGAllocs)
	}
	if !p.NextPeriodicLaunch.IsZero() {
		fmt.Fprintf(a.Out, "- The next launch would be at %s.\n", stamp(p.NextPeriodicLaunch))
	}
	if p.Annotations != nil && len(p.Annotations.PreemptedAllocs) > 0 {
		fmt.Fprintln(a.Out, "- These allocations would be preempted:")
		for _, v := range p.Annotations.PreemptedAllocs {
			fmt.Fprintf(a.Out, "    %s  %s\n", short(v.ID), v.Name)
		}
	}
}

// changes tells whether allocations would be created or destroyed.
func (p *planned) changes() bool {
	if p.Annotations == nil {
		return false
	}
	for _, u := range p.Annotations.DesiredTGUpdates {
		if u.Place+u.Migrate+u.Stop+u.DestructiveUpdate+u.Canary+u.Preemptions > 0 {
			return true
		}
	}
	return false
}
