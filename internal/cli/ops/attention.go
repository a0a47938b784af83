package ops

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/cli/term"
)

// AttentionCommand is "drover attention".
func AttentionCommand(app *term.App) *cobra.Command {
	o := &term.Output{}
	c := term.Command(app, "attention", "Say how the cluster is, and what of it wants attention", 0, 0,
		func(ctx context.Context, app *term.App, _ []string) error { return attention(ctx, app, o) })
	term.Describe(c, `
Says of servers, nodes, evaluations, deployments, environments, the fleet and volumes how they are, and lists what wants attention, the
worst first: since when, why, and the command that tells more or mends it. It tells what the token may read, and is what the web page
begins with.

Exit codes: 0 if all is well, 1 if something is broken, 5 if all works but something is weak.`,
		"drover attention\ndrover attention -json\ndrover attention -t '{{range .Concerns}}{{.Code}} {{.Subject}}{{\"\\n\"}}{{end}}'")
	o.Bind(c.Flags())
	return c
}

func attention(ctx context.Context, app *term.App, o *term.Output) error {
	api, err := app.Native()
	if err != nil {
		return err
	}
	a, err := api.Attention(ctx)
	if err != nil {
		return err
	}
	done, err := o.Data(app.Out, a)
	if !done {
		err = showAttention(app, &a)
	}
	if err != nil {
		return err
	}
	switch a.State {
	case cluster.Broken:
		return &term.ExitError{Code: term.ExitFailure, Err: errors.New("something of the cluster is broken")}
	case cluster.Weak:
		return &term.ExitError{Code: term.ExitWeak, Err: errors.New("the cluster works, but something of it wants attention")}
	}
	return nil
}

func showAttention(app *term.App, a *cluster.Attention) error {
	var rows [][]string
	for _, area := range a.Areas {
		rows = append(rows, []string{area.Name, area.State, term.OneLine(area.Says)})
	}
	if err := term.Table(app.Out, "The token may see nothing of the cluster.", "Area|State|Says", rows); err != nil || len(a.Concerns) == 0 {
		return err
	}
	rows = nil
	for _, c := range a.Concerns {
		since := "-"
		if !c.Since.IsZero() {
			since = term.Ago(c.Since.UnixNano())
		}
		rows = append(rows, []string{c.State, since, term.OneLine(c.Says), term.OneLine(c.Next)})
	}
	fmt.Fprintln(app.Out)
	return term.Table(app.Out, "", "State|Since|What|Next", rows)
}
