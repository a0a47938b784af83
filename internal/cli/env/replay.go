package env

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/client"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/cli/term"
	"github.com/drover-project/drover/internal/clock"
)

// replayCommand is "drover execution replay".
func replayCommand(app *term.App) *cobra.Command {
	speed, cast := 1.0, false
	idle := 2 * time.Second
	run := func(ctx context.Context, c *client.Client, args []string) error {
		if speed < 0 {
			return drover.Errorf(drover.Invalid, "-speed %v: want a factor, or 0 for all at once", speed)
		}
		x, err := c.Execution(ctx, args[0])
		if err != nil {
			return err
		}
		if x.Receipt == nil {
			return drover.Errorf(drover.Conflict, "execution %s still runs: its web page shows it live", args[0])
		}
		times, err := c.Timeline(ctx, args[0])
		if err != nil {
			return err
		}
		pieces, err := recorded(ctx, c, &times)
		if err != nil {
			return err
		}
		if cast {
			return execution.WriteCast(app.Out, &times, &x.Spec, pieces)
		}
		return play(ctx, app, pieces, speed, idle)
	}
	c := term.NativeCommand(app, "replay EXECUTION", "Show what an execution wrote, as it wrote it", 1, 1, run)
	term.Describe(c, `
Writes the output of an execution that ended to standard output and standard error, with the pauses that it had. What an execution wrote is
kept for 15 minutes after its end, the last MiB of each stream. What a program writes may steer your terminal.`,
		`drover execution replay 4c1f…
drover execution replay -speed 0 4c1f…
drover execution replay -cast 4c1f… > run.cast   # for asciinema play`)
	c.Flags().Float64Var(&speed, "speed", 1, "factor; 0 is all at once")
	c.Flags().DurationVar(&idle, "idle", idle, "longest pause between pieces of output; 0 is no bound")
	c.Flags().BoolVar(&cast, "cast", false, "print an asciicast (version 2) instead")
	return c
}

// recorded is what is kept of an execution's output, with its times.
func recorded(ctx context.Context, c *client.Client, times *execution.Timeline) ([]execution.Piece, error) {
	s, err := c.Observe(ctx, times.ExecutionID, execution.Offsets{})
	if err != nil {
		return nil, err
	}
	defer s.Close() //nolint:errcheck // it was read
	var from execution.Offsets
	var out, errs []byte
	for {
		f, err := s.Next(ctx)
		switch {
		case err != nil:
			return nil, err
		case f.Receipt != nil:
			return times.Pieces(from, out, errs), nil
		case f.Stream == execution.Stdout:
			if f.Skipped {
				from.Stdout, out = f.Offset, nil
			}
			out = append(out, f.Data...)
		case f.Stream == execution.Stderr:
			if f.Skipped {
				from.Stderr, errs = f.Offset, nil
			}
			errs = append(errs, f.Data...)
		}
	}
}

// play writes pieces when it is time.
func play(ctx context.Context, app *term.App, pieces []execution.Piece, speed float64, idle time.Duration) error {
	last := time.Duration(0)
	for _, p := range pieces {
		wait := p.At - last
		if last = p.At; idle > 0 {
			wait = min(wait, idle)
		}
		if speed > 0 && !clock.Sleep(ctx, app.Clock, time.Duration(float64(wait)/speed)) {
			return context.Cause(ctx)
		}
		to := app.Out
		if p.Stream == execution.MessageStderr {
			to = app.Err
		}
		if _, err := to.Write(p.Data); err != nil {
			return err
		}
	}
	return nil
}
