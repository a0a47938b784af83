package follow

import (
	"time"

	"github.com/spf13/cobra"
)

// Options are the flags of commands that lead to an evaluation.
type Options struct {
	detach, Verbose bool
	Wait            bool // until all allocations, or the deployment, ended
	// PlaceWithin bounds how long Wait waits for room for what cannot be placed yet; 0: not at all.
	PlaceWithin time.Duration
}

// Bind adds the flags -detach and -verbose.
func (f *Options) Bind(c *cobra.Command) {
	c.Flags().BoolVar(&f.detach, "detach", false, "do not follow; print the evaluation's id")
	c.Flags().BoolVar(&f.Verbose, "verbose", false, "whole ids")
}

// BindWait adds the flag -wait to a command that may lead to a deployment.
func (f *Options) BindWait(c *cobra.Command) {
	c.Flags().BoolVar(&f.Wait, "wait", false, "follow the deployment that comes of it to its end; exit with 1 if it fails")
}
