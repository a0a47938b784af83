package ops

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/drover-project/drover/internal/cli/api"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/term"
)

// AgentInfoCommand is "drover agent-info". For people it prints the statistics only; -json adds the configuration and
// the member.
func AgentInfoCommand(app *term.App) *cobra.Command {
	o := &term.Output{}
	run := func(ctx context.Context, c *api.Client, _ []string) error {
		var r struct {
			Config map[string]any               `json:"config"`
			Member map[string]any               `json:"member"`
			Stats  map[string]map[string]string `json:"stats"`
		}
		if _, err := c.Get(ctx, "/v1/agent/self", nil, &r); err != nil {
			return err
		}
		if done, err := o.Data(app.Out, r); done {
			return err
		}
		for _, part := range slices.Sorted(maps.Keys(r.Stats)) {
			fmt.Fprintln(app.Out, part)
			for _, k := range slices.Sorted(maps.Keys(r.Stats[part])) {
				fmt.Fprintf(app.Out, "  %s = %s\n", k, term.OneLine(r.Stats[part][k]))
			}
		}
		return nil
	}
	c := term.NomadCommand(app, "agent-info", "Show who the agent is and how it does", 0, 0, run)
	o.Bind(c.Flags())
	return c
}
