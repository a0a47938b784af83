package follow

import (
	"github.com/spf13/cobra"
)

// Options are the flags of commands that lead to an evaluation.
type Options struct {
	detach, Verbose bool
	Wait            bool // until all allocations, or the deployment, ended
}

// Bind adds the flags -detach and -verbose; Wait is for commands that have it.
func (f *Options) Bind(c *cobra.Command) {
	c.Flags().BoolVar(&f.detach, "detach", false, "do not follow; print the evaluation's id")
	c.Flags().BoolVar(&f.Verbose, "verbose", false, "whole ids")
}
