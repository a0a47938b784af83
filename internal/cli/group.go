package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
)

// group is a command that only has others below it.
func group(name, short string, children ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use: name + " COMMAND", Short: short, SuggestionsMinimumDistance: 2, DisableFlagsInUseLine: true,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return c.Help()
			}
			hint := ""
			if near := c.SuggestionsFor(args[0]); len(near) > 0 {
				hint = "; perhaps: " + strings.Join(near, ", ")
			}
			return drover.Errorf(drover.Invalid, "%s has no command %q%s; '%s -help' lists them", c.CommandPath(), args[0], hint, c.CommandPath())
		},
	}
	c.AddCommand(children...)
	return c
}

// leaf is a command that does something; it is given from min to max words (max < 0: any number).
func leaf(use, short string, least, most int, run func(ctx context.Context, args []string) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) >= least && (most < 0 || len(args) <= most) {
				return nil
			}
			return drover.Errorf(drover.Invalid, "%s given; it is: %s", plural(len(args), "argument"), c.UseLine())
		},
		RunE: func(c *cobra.Command, args []string) error { return run(c.Context(), args) },
	}
}

// with adds the long text and the examples to a command; lines of examples are indented for it.
func with(c *cobra.Command, long, examples string) {
	c.Long = long
	if examples != "" {
		c.Example = "  " + strings.ReplaceAll(strings.TrimSpace(examples), "\n", "\n  ")
	}
}
