package agent

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/term"
	"github.com/drover-project/drover/internal/config"
)

// configCommand is "drover agent config". It prints the configuration that counts, after all sources were put
// together, as a file that -config takes. Secrets are printed too, since the file would not work without them.
func configCommand(app *term.App, f *flags) *cobra.Command {
	c := &cobra.Command{
		Use: "config", Short: "Print the effective configuration as JSON, which -config takes", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			cfg, err := f.load()
			if err != nil {
				return err
			}
			return term.PrintJSON(app.Out, cfg.Keys())
		},
	}
	c.Flags().BoolVar(&f.dev, "dev", false, "everything in one process, nothing kept")
	c.Flags().StringArrayVar(&f.configs, "config", nil, "a file or folder of configuration")
	return c
}

// ConfigCommand is "drover config", as Nomad has it: what looks at configurations without an agent.
func ConfigCommand(app *term.App) *cobra.Command {
	run := func(_ context.Context, app *term.App, args []string) error {
		f := &flags{configs: args, httpPort: -1, rpcPort: -1, expect: -1}
		cfg, err := f.load()
		if err != nil {
			return err
		}
		for _, key := range cfg.Ignored {
			why := ""
			if reason := config.WhyIgnored(key); reason != "" {
				why = ": " + reason
			}
			fmt.Fprintf(app.Err, "Warning: %s is Nomad's and has no effect here%s\n", key, why)
		}
		_, err = fmt.Fprintln(app.Out, "The configuration is valid.")
		return err
	}
	c := term.Command(app, "validate FILE|FOLDER…", "Check an agent's configuration, and list all that is wrong", 1, -1, run)
	term.Describe(c, `
Reads the files as 'drover agent' would, one over the other, with the variables of the environment; no port is opened, and no folder
is made. Exit codes: 0 valid, 2 not.`, "drover config validate /etc/drover\ndrover config validate base.hcl site.hcl")
	return term.Group("config", "Look at configurations of agents", c)
}
