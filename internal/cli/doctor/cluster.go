package doctor

import (
	"context"
	"errors"

	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/cli/term"
)

// examineCluster has the agent ask the servers of its region how they are. It prints what that means, and returns the verdict.
func examineCluster(ctx context.Context, app *term.App, o *term.Output) error {
	c, err := app.Native()
	if err != nil {
		return err
	}
	found, err := c.Doctor(ctx)
	if err != nil {
		return err
	}
	done, err := o.Data(app.Out, found.Findings)
	if !done {
		var rows [][]string
		for _, f := range found.Findings {
			rows = append(rows, []string{f.Check, f.State, f.Server, f.Says})
		}
		err = term.Table(app.Out, "", "Check|State|Server|Says", rows)
	}
	if err != nil {
		return err
	}
	switch found.State {
	case cluster.Broken:
		return &term.ExitError{Code: term.ExitFailure, Err: errors.New("something of the cluster is broken")}
	case cluster.Weak:
		return &term.ExitError{Code: term.ExitWeak, Err: errors.New("the cluster works, but not through everything that may come")}
	}
	return nil
}
