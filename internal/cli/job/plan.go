package job

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
	"github.com/drover-project/drover/internal/cli/view"
)

// planFlags are the flags of "drover job plan". detailed makes allocations that would change an exit code; verbose
// shows unchanged parts of the difference.
type planFlags struct {
	file     file
	diff     bool
	detailed bool
	verbose  bool
}

// planCommand is "drover job plan". Work without room is an exit code of its own (4), so that a pipeline can stop there.
func planCommand(app *term.App) *cobra.Command {
	f := &planFlags{}
	run := func(ctx context.Context, app *term.App, args []string) error {
		return plan(ctx, app, f, args[0])
	}
	c := term.Command(app, "plan FILE|-", "Show what registering a job would do", 1, 1, run)
	term.Describe(c, `Shows the difference to the registered job and what the scheduler would do. Nothing is changed.

Exit codes: 0, with -detailed-exitcode 1 if allocations would be created or destroyed; 4 if not all could be placed;
2 the file is wrong.`, "drover job plan web.hcl\ndrover job plan -var count=3 web.hcl")
	f.file.bind(c.Flags())
	c.Flags().BoolVar(&f.diff, "diff", true, "show the difference")
	c.Flags().BoolVar(&f.detailed, "detailed-exitcode", false, "exit with 1 if allocations would be created or destroyed")
	c.Flags().BoolVar(&f.verbose, "verbose", false, "show what stays the same too")
	return c
}

// plan asks the server for a dry run of the registration and prints it. It changes nothing. Errors: Invalid for the
// file; the API's; *term.ExitError with 4 if something has no room, or with 1 as -detailed-exitcode says.
func plan(ctx context.Context, app *term.App, f *planFlags, path string) error {
	job, _, err := f.file.read(ctx, app, path)
	if err != nil {
		return err
	}
	c, err := app.Nomad()
	if err != nil {
		return err
	}
	var p drover.Preview
	if err := c.Put(ctx, api.JobPath(job.ID, "/plan"), nil, map[string]any{"Job": job, "Diff": f.diff}, &p); err != nil {
		return err
	}
	if p.Diff != nil {
		(&differ{w: app.Out, all: f.verbose}).job(p.Diff)
		fmt.Fprintln(app.Out)
	}
	dryRun(app, &p)
	if p.Warnings != "" {
		fmt.Fprintf(app.Out, "\nWarnings: %s\n", p.Warnings)
	}
	// The index makes the registration conditional: 0 registers only if the job is still new.
	fmt.Fprintf(app.Out, `
Job modify index: %d
To register it only if nobody changes the job meanwhile:

    drover job run -check-index %[1]d %s
`, p.JobModifyIndex, path)
	switch {
	case len(p.FailedTGAllocs) > 0:
		return &term.ExitError{Code: term.ExitUnplaced}
	case f.detailed && changes(&p):
		return &term.ExitError{Code: term.ExitFailure}
	}
	return nil
}

// shownPlacements are how many are printed at most: a large job has thousands.
const shownPlacements = 20

// dryRun prints what the scheduler would do: what it cannot place and why, where it would place the rest, the next launch, and what it
// would preempt.
func dryRun(app *term.App, p *drover.Preview) {
	fmt.Fprintln(app.Out, "Scheduler dry-run:")
	if len(p.FailedTGAllocs) == 0 {
		fmt.Fprintln(app.Out, "- All tasks successfully allocated.")
	} else {
		fmt.Fprintln(app.Out, "- Not everything can be placed:")
		view.ExplainUnplaced(app.Out, "  ", p.FailedTGAllocs)
	}
	for i, where := range p.Placements {
		if i == shownPlacements {
			fmt.Fprintf(app.Out, "- and so on, on %d more nodes.\n", len(p.Placements)-i)
			break
		}
		fmt.Fprintf(app.Out, "- Node %s (%s) would get %d of group %q.\n", where.NodeName, term.ShortID(where.NodeID), where.Count,
			where.Group)
	}
	if !p.NextPeriodicLaunch.IsZero() {
		fmt.Fprintf(app.Out, "- The next launch would be at %s.\n", term.Stamp(p.NextPeriodicLaunch))
	}
	if p.Annotations != nil && len(p.Annotations.PreemptedAllocs) > 0 {
		fmt.Fprintln(app.Out, "- These allocations would be preempted:")
		for _, v := range p.Annotations.PreemptedAllocs {
			fmt.Fprintf(app.Out, "    %s  %s\n", term.ShortID(v.ID), v.Name)
		}
	}
}

// changes reports whether allocations would be created or destroyed. Updates in place and ignored allocations do not
// count. Without annotations nothing was scheduled, as for a periodic job, so the answer is false.
func changes(p *drover.Preview) bool {
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
