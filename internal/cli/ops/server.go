package ops

import (
	"context"
	"fmt"

	"github.com/drover-project/drover/internal/cli/api"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/term"
)

// ServerCommand is "drover server", which has "members" only. The leader is asked for separately; without one, as
// during an election, no member is marked.
func ServerCommand(app *term.App) *cobra.Command {
	o := &term.Output{}
	c := term.NomadCommand(app, "members", "List the servers", 0, 0, func(ctx context.Context, c *api.Client, _ []string) error {
		var r struct {
			ServerRegion, ServerDC string
			Members                []struct {
				Name, Addr, Status string
				Port               uint16
				Tags               map[string]string
			}
		}
		if _, err := c.Get(ctx, "/v1/agent/members", nil, &r); err != nil {
			return err
		}
		var leader string
		if _, err := c.Get(ctx, "/v1/status/leader", nil, &leader); err != nil {
			leader = "" // there may be none just now; the members are there nevertheless
		}
		if done, err := o.Data(app.Out, r.Members); done {
			return err
		}
		var rows [][]string
		for _, m := range r.Members {
			at := fmt.Sprintf("%s:%d", m.Addr, m.Port)
			// A single server leads, also if its member and the leader have different addresses.
			rows = append(rows, []string{
				m.Name, at, m.Status, term.YesNo(at == leader || len(r.Members) == 1 && leader != ""), m.Tags["build"],
				m.Tags["dc"], m.Tags["region"],
			})
		}
		return term.Table(app.Out, "There are none.", "Name|Address|Status|Leader|Build|Datacenter|Region", rows)
	})
	o.Bind(c.Flags())
	return term.Group("server", "Look at the servers", c)
}
