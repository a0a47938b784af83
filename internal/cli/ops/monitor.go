package ops

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
)

// MonitorCommand is "drover monitor". The log begins at the call and ends with Ctrl-C. The agent refuses with
// NotImplemented if the flags name an agent other than itself.
func MonitorCommand(app *term.App) *cobra.Command {
	var level, node, server string
	var asJSON bool
	run := func(ctx context.Context, c *api.Client, _ []string) error {
		if node != "" {
			n, err := c.Node(ctx, node)
			if err != nil {
				return err
			}
			node = n.ID
		}
		fmt.Fprintf(app.Err, "==> What the agent logs from now on, level %s and up (Ctrl-C ends it)\n", level)
		if asJSON {
			return monitorJSON(ctx, app, c, api.Query("log_level", level, "node_id", node, "server_id", server, "log_json", "true"))
		}
		return c.CopyTo(ctx, app.Out, "/v1/agent/monitor", api.Query("log_level", level, "node_id", node, "server_id", server, "plain", "true"))
	}
	c := term.NomadCommand(app, "monitor", "Print the agent's log, as it is written", 0, 0, run)
	c.Flags().StringVar(&level, "log-level", "info", "trace, debug, info, warn or error")
	c.Flags().StringVar(&node, "node-id", "", "of this node")
	c.Flags().StringVar(&server, "server-id", "", "of this server")
	c.Flags().BoolVar(&asJSON, "json", false, "JSON lines")
	return c
}

// monitorJSON unpacks the frames that JSON logs come in, as Nomad's API has no plain form of them, and prints the
// lines as they are. Errors: the API's; Unavailable when the log ends before ctx does.
func monitorJSON(ctx context.Context, app *term.App, c *api.Client, q url.Values) error {
	res, err := c.Open(ctx, http.MethodGet, "/v1/agent/monitor", q, nil)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	for d := json.NewDecoder(res.Body); ; {
		var f struct{ Data []byte }
		if err := d.Decode(&f); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return drover.Errorf(drover.Unavailable, "the log ended: %w", err)
		}
		if _, err := app.Out.Write(f.Data); err != nil {
			return err
		}
	}
}
