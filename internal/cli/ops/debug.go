package ops

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
)

// debugFlags are those of "drover operator debug".
type debugFlags struct {
	duration, interval, pprof time.Duration
	level, output             string
	servers, nodes            []string
}

// debugCommand is "drover operator debug". The archive is its user's alone: it has the log, and what is configured.
func debugCommand(app *term.App) *cobra.Command {
	var f debugFlags
	c := term.NomadCommand(app, "debug", "Collect one archive of what servers and nodes say of themselves", 0, 0,
		func(ctx context.Context, c *api.Client, _ []string) error { return debug(ctx, app, c, f) })
	term.Describe(c, `
Follows the logs for a while, and has each server of the region, and the nodes that are named, tell their metrics, profiles,
configuration and machine. It adds the members, the raft configuration, the health of the servers, and lists of jobs, nodes,
allocations, evaluations and deployments. Tokens and keys are left out, and so is what jobs give their tasks; but logs and names
are in it: look at it before you hand it on. The file can be read by its owner only.

A server that does not answer is said to in index.json; the others are collected. Profiles need enable_debug = true at the agents.
Ctrl-C ends the collecting early; the archive is complete then, too.`, `drover operator debug
drover operator debug -duration 30s -interval 10s -node-id all -output /tmp/debug.tar.gz`)
	fl := c.Flags()
	fl.DurationVar(&f.duration, "duration", 2*time.Minute, "how long logs are followed and metrics collected")
	fl.DurationVar(&f.interval, "interval", 30*time.Second, "time between two readings of the metrics")
	fl.DurationVar(&f.pprof, "pprof-duration", time.Second, "how long a profile of the processor takes; 0 takes no profiles")
	fl.StringVar(&f.level, "log-level", "debug", "trace, debug, info, warn or error")
	fl.StringSliceVar(&f.servers, "server-id", []string{"all"}, "ids or names of servers, leader, all or none")
	fl.StringSliceVar(&f.nodes, "node-id", []string{"none"}, "ids of nodes, all or none")
	fl.StringVar(&f.output, "output", "", "the archive; default drover-debug-TIME.tar.gz in this folder")
	return c
}

// debug collects. Errors: Invalid; those of the archive's file. What agents do not answer stands in the archive.
func debug(ctx context.Context, app *term.App, c *api.Client, f debugFlags) error {
	if f.duration < 0 || f.interval <= 0 || f.pprof < 0 {
		return drover.Errorf(drover.Invalid, "durations must not be negative, and -interval not 0")
	}
	name := "drover-debug-" + app.Clock.Now().UTC().Format("2006-01-02-150405Z")
	if f.output == "" {
		f.output = name + ".tar.gz"
	}
	file, err := os.OpenFile(f.output, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return drover.Errorf(drover.Invalid, "-output: %w", err)
	}
	x := newCapture(app, c, f, file, name)
	err = x.run(ctx)
	if e := file.Close(); err == nil {
		err = e
	}
	if err != nil {
		_ = os.Remove(f.output) // the reason is told
		return err
	}
	for _, p := range x.index.Problems {
		fmt.Fprintf(app.Err, "%s: %s\n", p.Path, p.Error)
	}
	_, err = fmt.Fprintf(app.Out, "Collected from %d agents into %s\n", len(x.index.Agents), f.output)
	return err
}
