package ops

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
)

// metricsCommand is "drover operator metrics". It prints JSON, as it is meant for programs.
func metricsCommand(app *term.App) *cobra.Command {
	o, format, pretty := &term.Output{}, "", false
	run := func(ctx context.Context, c *api.Client, _ []string) error {
		switch {
		case format == "prometheus" && o.Template == "":
			return c.CopyTo(ctx, app.Out, "/v1/metrics", api.Query("format", format))
		case format != "" && format != "json" && format != "pretty":
			return drover.Errorf(drover.Invalid, "-format %q: want json or prometheus, which goes without -t", format)
		}
		var m map[string]any
		if _, err := c.Get(ctx, "/v1/metrics", nil, &m); err != nil {
			return err
		}
		if o.Template != "" || pretty || format == "pretty" {
			o.JSON = o.Template == ""
			_, err := o.Data(app.Out, m)
			return err
		}
		text, err := json.Marshal(m)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(app.Out, string(text))
		return err
	}
	c := term.NomadCommand(app, "metrics", "Print the agent's metrics", 0, 0, run)
	term.Describe(c, "", `drover operator metrics -pretty
drover operator metrics -format prometheus
drover operator metrics -t '{{range .Gauges}}{{.Name}} {{.Value}}{{"\n"}}{{end}}'`)
	fl := c.Flags()
	fl.StringVar(&format, "format", "", "json or prometheus; default: json")
	fl.BoolVar(&pretty, "pretty", false, "indent the JSON")
	fl.StringVarP(&o.Template, "template", "t", "", "print with this Go template")
	// The flag exists for Nomad's scripts. Nobody reads its value: JSON is printed anyway.
	fl.Bool("json", true, "print JSON, as it does by itself")
	return c
}
