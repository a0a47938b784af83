package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"

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
	return judged(found.State, "something of the cluster is broken", "the cluster works, but not through everything that may come")
}

// judged is an error with the exit code of the worst state.
func judged(state, broken, weak string) error {
	switch state {
	case cluster.Broken:
		return &term.ExitError{Code: term.ExitFailure, Err: errors.New(broken)}
	case cluster.Weak:
		return &term.ExitError{Code: term.ExitWeak, Err: errors.New(weak)}
	}
	return nil
}

// examineNodes prints what the nodes found of themselves, or what the one does that is named, and returns the verdict.
func examineNodes(ctx context.Context, app *term.App, o *term.Output, node string) error {
	c, err := app.Native()
	if err != nil {
		return err
	}
	found, err := c.DoctorOfNodes(ctx, node)
	if err != nil {
		return err
	}
	done, err := o.Data(app.Out, found)
	if !done {
		err = tellNodes(app, found)
	}
	if err != nil {
		return err
	}
	return judged(found.State, "something of a node is broken", "all nodes work, but something of them is weak")
}

func tellNodes(app *term.App, found cluster.NodesExamination) error {
	rows := make([][]string, 0, len(found.Findings))
	for _, f := range found.Findings {
		names := make([]string, 0, len(f.Nodes))
		for _, n := range f.Nodes {
			names = append(names, n.Name)
		}
		where := strings.Join(names, ", ")
		if more := f.Count - len(names); more > 0 {
			where += fmt.Sprintf(" and %d more", more)
		}
		rows = append(rows, []string{f.Check, f.State, where, f.Says})
	}
	if len(rows) == 0 && found.Nodes > 0 {
		fmt.Fprintln(app.Out, "Nothing is wrong with them.")
	} else if len(rows) > 0 {
		if err := term.Table(app.Out, "", "Check|State|Nodes|Says", rows); err != nil {
			return err
		}
	}
	said := fmt.Sprintf("Nodes looked at: %d.", found.Nodes)
	if found.Silent > 0 {
		said += fmt.Sprintf(" %d of them do not say what they found: their agents are older.", found.Silent)
	}
	_, err := fmt.Fprintln(app.Out, said)
	return err
}
