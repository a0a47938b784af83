package fleet

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/cli/term"
)

// applyCommand is "drover fleet apply". What would change is asked first and printed; the server refuses the change if the pools
// are others by then.
func applyCommand(app *term.App) *cobra.Command {
	o, file, preview := &term.Output{}, "", false
	run := func(ctx context.Context, app *term.App, _ []string) error {
		ask := fleet.Application{Preview: true}
		if file != "" {
			var err error
			if ask.Pools, err = readPools(ctx, app, file); err != nil {
				return err
			}
		}
		c, err := newClient(app)
		if err != nil {
			return err
		}
		would, err := c.apply(ctx, ask)
		if err == nil && !preview && len(would.Changes) > 0 {
			ask.Preview, ask.Version = false, would.Version
			if !o.JSON && o.Template == "" {
				if err := showChanges(app, &would); err != nil {
					return err
				}
			}
			would, err = c.apply(ctx, ask)
		}
		if err != nil {
			return err
		}
		if done, err := o.Data(app.Out, would); done {
			return err
		}
		if would.Applied {
			_, err := fmt.Fprintf(app.Out, "%d pools are changed, by %s.\n", len(would.Changes), would.Server)
			return err
		}
		return showChanges(app, &would)
	}
	c := term.Command(app, "apply", "Make the fleet's pools those of a file", 0, 0, run)
	o.Bind(c.Flags())
	c.Flags().StringVar(&file, "file", "", "pool blocks, or an agent's configuration; default that of the asked server, as it is now")
	c.Flags().BoolVar(&preview, "preview", false, "change nothing, only say what would change")
	term.Describe(c, `Several servers keep the pools together: the first leader's configuration gives the first ones, and after that
this command applies what changed in a file. Pools that the file lacks end with their last machine; those that were made over the API stay.
'drover fleet status' says in what the asked server's configuration differs.`, `drover fleet apply -preview
drover fleet apply -file pools.hcl`)
	return c
}

// apply asks for an application.
func (c *client) apply(ctx context.Context, ask fleet.Application) (out fleet.Applied, err error) {
	return out, c.Client.Put(ctx, "/v1/fleet/apply", nil, ask, &out)
}

// showChanges prints what would change, a row for each key.
func showChanges(app *term.App, a *fleet.Applied) error {
	var rows [][]string
	for k := range a.Changes {
		c := &a.Changes[k]
		machines := ""
		if c.Machines > 0 {
			machines = fmt.Sprint(c.Machines)
		}
		if c.Replaces {
			machines += ", replaced as they become idle"
		}
		if len(c.Keys) == 0 {
			rows = append(rows, []string{c.Pool, c.What, "", "", "", machines})
		}
		for _, key := range c.Keys {
			rows = append(rows, []string{c.Pool, c.What, key.Key, key.Now, key.Next, strings.TrimPrefix(machines, ", ")})
			machines = ""
		}
	}
	return term.Table(app.Out, "The fleet's pools are those of the file.", "Pool|What|Key|Now|Next|Machines", rows)
}

// showDifferences is what "drover fleet status" says without a machine.
func showDifferences(ctx context.Context, app *term.App, c *client, o *term.Output) error {
	var a fleet.Applied
	if err := c.get(ctx, "/v1/fleet/apply", nil, &a); err != nil {
		return err
	}
	if done, err := o.Data(app.Out, a); done {
		return err
	}
	if err := term.Facts(app.Out, "Server", a.Server, "Version of the pools", fmt.Sprint(a.Version)); err != nil {
		return err
	}
	term.Section(app.Out, "What its configuration has else")
	return showChanges(app, &a)
}
