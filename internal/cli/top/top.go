package top

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/client"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
)

// Bounds of what is looked at each time.
const (
	mostRows    = 20              // of a table, and nodes that are asked
	answerWait  = 2 * time.Second // for a node's own answer
	minInterval = 100 * time.Millisecond
)

// flags are those of the command.
type flags struct {
	interval time.Duration
	times    int
}

// Command is "drover top".
func Command(app *term.App) *cobra.Command {
	f := &flags{}
	c := term.Command(app, "top", "Watch what nodes use, what waits or failed, and environments", 0, 0,
		func(ctx context.Context, app *term.App, _ []string) error { return f.run(ctx, app) })
	term.Describe(c, `
Shows, at a terminal again and again until Ctrl-C: what the first 20 nodes use; jobs of which something waits, or failed; and the pools
of environments. What the token may not see says so. Without a terminal it prints once.`,
		"drover top\ndrover top -interval 10s -namespace web\ndrover top -n 1")
	c.Flags().DurationVar(&f.interval, "interval", 2*time.Second, "time between two looks; at least 100ms")
	c.Flags().IntVarP(&f.times, "times", "n", 0, "how often; default: once, and at a terminal until Ctrl-C")
	return c
}

// run shows frame after frame. Errors: Invalid for flags; the API's, if the first frame had nothing.
func (f *flags) run(ctx context.Context, app *term.App) error {
	if f.interval < minInterval || f.times < 0 {
		return drover.Errorf(drover.Invalid, "-interval must be at least %v, and -n not negative", minInterval)
	}
	nomad, err := app.Nomad()
	if err != nil {
		return err
	}
	native, err := app.Native()
	if err != nil {
		return err
	}
	screen := term.Live(app)
	defer screen.Close()
	if !screen.Refreshes() && f.times == 0 {
		f.times = 1
	}
	for n := 1; ; n++ {
		err := screen.Show(func(w io.Writer) error {
			l := look{app: app, api: nomad, native: native, w: w}
			if err := l.frame(ctx); err != nil && n == 1 {
				return err
			}
			return nil // it stands in the frame, and may be over at the next
		})
		switch {
		case ctx.Err() != nil && n > 1: // it was left
			return nil
		case err != nil:
			return err
		case n == f.times:
			return nil
		}
		timer := app.Clock.NewTimer(f.interval)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C():
		}
	}
}

// look is one look at the cluster, which is written to w.
type look struct {
	app    *term.App
	api    *api.Client
	native *client.Client
	w      io.Writer
}

// frame writes all parts. A part that cannot be had says why. Errors: the first part's, if none can be had.
func (l *look) frame(ctx context.Context) error {
	fmt.Fprintf(l.w, "%s at %s\n", l.api.Address, l.app.Clock.Now().Format(time.TimeOnly))
	var first error
	some := false
	for _, part := range []struct {
		title string
		write func(context.Context) error
	}{{"Nodes", l.nodes}, {"Jobs that wait, or failed", l.jobs}, {"Environments", l.environments}} {
		term.Section(l.w, part.title)
		err := part.write(ctx)
		switch {
		case err == nil:
			some = true
		case first == nil:
			first = err
		}
		if err != nil {
			fmt.Fprintln(l.w, term.OneLine(err.Error()))
		}
	}
	if some {
		return nil
	}
	return first
}
