package fleet

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/cli/term"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/config"
)

func actCommand(app *term.App, word, short string) *cobra.Command {
	reason := ""
	c := command(app, word+" INSTANCE…", short, 1, -1, func(ctx context.Context, c *client, args []string) error {
		var failed error
		for _, id := range args {
			if err := c.put(ctx, "/v1/fleet/instance/"+url.PathEscape(id)+"/"+word, map[string]string{"Reason": reason}); err != nil {
				failed = errors.Join(failed, err)
				continue
			}
			fmt.Fprintf(app.Out, "%s: %s\n", id, word) // Out's errors are not worth more than the deed
		}
		return failed
	})
	c.Flags().StringVar(&reason, "reason", "", "why, for the audit log")
	return c
}

// interruptCommand tells what the cloud would: for clouds whose notices come by another way, and to try it.
func interruptCommand(app *term.App) *cobra.Command {
	in := 2 * time.Minute
	run := func(ctx context.Context, app *term.App, args []string) error {
		if in <= 0 {
			return drover.Errorf(drover.Invalid, "-in: must be above 0, got %s", in)
		}
		c, err := newClient(app)
		if err != nil {
			return err
		}
		var failed error
		for _, id := range args {
			at := clock.Wall{}.Now().Add(in).UTC()
			if err := c.put(ctx, "/v1/fleet/instance/"+url.PathEscape(id)+"/interrupt", map[string]time.Time{"At": at}); err != nil {
				failed = errors.Join(failed, err)
				continue
			}
			fmt.Fprintf(app.Out, "%s: taken back at %s\n", id, at.Format(time.RFC3339)) // Out's errors are not worth more than the deed
		}
		return failed
	}
	c := term.Command(app, "interrupt INSTANCE…", "Tell that the cloud takes machines back: others are bought now, work moves before", 1, -1,
		run)
	c.Flags().DurationVar(&in, "in", in, "when it is taken back, from now")
	return c
}

func pauseCommand(app *term.App, word string) *cobra.Command {
	var p fleet.Pause
	short := "Decide again: creates and destroys"
	if word == "pause" {
		short = "Decide nothing more: -creates, -destroys, or both"
	}
	c := term.Command(app, word+" POOL…", short, 1, -1, func(ctx context.Context, app *term.App, args []string) error {
		if word == "pause" && !p.Creates && !p.Destroys {
			p.Creates, p.Destroys = true, true
		}
		c, err := newClient(app)
		if err != nil {
			return err
		}
		for _, name := range args {
			if err := c.put(ctx, "/v1/fleet/pool/"+url.PathEscape(name)+"/pause", p); err != nil {
				return err
			}
			fmt.Fprintf(app.Out, "%s: %s\n", name, word) // Out's errors are not worth more than the deed
		}
		return nil
	})
	if word == "pause" {
		c.Flags().BoolVar(&p.Creates, "creates", false, "buy nothing more")
		c.Flags().BoolVar(&p.Destroys, "destroys", false, "return nothing more")
	}
	c.Flags().StringVar(&p.Reason, "reason", "", "why, for the audit log")
	return c
}

// readPools reads pools from a file; "-" is standard input.
func readPools(ctx context.Context, app *term.App, path string) ([]*fleet.Policy, error) {
	data, err := app.ReadInput(ctx, path)
	if err != nil {
		return nil, err
	}
	return config.ParsePools(data, path)
}

func putCommand(app *term.App) *cobra.Command {
	run := func(ctx context.Context, app *term.App, args []string) error {
		list, err := readPools(ctx, app, args[0])
		if err != nil {
			return err
		}
		c, err := newClient(app)
		if err != nil {
			return err
		}
		for _, p := range list {
			if err := c.put(ctx, "/v1/fleet/pool/"+url.PathEscape(p.Name), p); err != nil {
				return err
			}
			fmt.Fprintf(app.Out, "Pool %q is set.\n", p.Name) // Out's errors are not worth more than the deed
		}
		return nil
	}
	c := term.Command(app, "put FILE", "Make or change the pools of a file", 1, 1, run)
	term.Describe(c, "FILE has pool blocks as in the agent's fleet block, in HCL or JSON; \"-\" is standard input. Machines that run are "+
		"untouched.", "drover fleet put pool.hcl")
	return c
}

func deleteCommand(app *term.App) *cobra.Command {
	run := func(ctx context.Context, c *client, args []string) error {
		if err := c.Delete(ctx, "/v1/fleet/pool/"+url.PathEscape(args[0]), nil, nil); err != nil {
			return plainError(err)
		}
		_, err := fmt.Fprintf(app.Out, "Pool %q ends with its last machine.\n", args[0])
		return err
	}
	return command(app, "delete POOL", "Let a pool end: nothing more is bought, machines go as they become idle", 1, 1, run)
}
