package agent

import (
	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/term"
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
