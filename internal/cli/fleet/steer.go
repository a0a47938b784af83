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
	"github.com/drover-project/drover/internal/config/machines"
)

// actCommand makes a command that orders one thing for each named machine, such as drain. word is both its name and
// the end of the API's path. A failure does not keep the others from being ordered; all are told at the end.
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

// interruptCommand is "drover fleet interrupt". It tells the fleet what a cloud's notice would: for clouds whose
// notices come by another way, and to try the reaction.
func interruptCommand(app *term.App) *cobra.Command {
	// The notice that EC2 gives before it takes a spot machine back.
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

// pauseCommand makes "pause" and "resume". Both send the whole pause: an empty one resumes. The first error ends the
// command.
func pauseCommand(app *term.App, word string) *cobra.Command {
	var p fleet.Pause
	short := "Decide again: creates and destroys"
	if word == "pause" {
		short = "Decide nothing more: -creates, -destroys, or both"
	}
	c := term.Command(app, word+" POOL…", short, 1, -1, func(ctx context.Context, app *term.App, args []string) error {
		// Without a flag both are meant; an empty pause would resume.
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

// readPools reads pool blocks from a file; "-" is standard input. Errors: Invalid with file and line.
func readPools(ctx context.Context, app *term.App, path string) ([]*fleet.Policy, error) {
	data, err := app.ReadInput(ctx, path)
	if err != nil {
		return nil, err
	}
	return machines.ParsePools(data, path)
}

// putCommand is "drover fleet put". All pools of the file are read before the first one is sent; the server checks
// each of them.
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

// deleteCommand is "drover fleet delete". Machines with work stay until it ends, so the pool is listed for a while
// yet.
func deleteCommand(app *term.App) *cobra.Command {
	run := func(ctx context.Context, c *client, args []string) error {
		if err := c.Delete(ctx, "/v1/fleet/pool/"+url.PathEscape(args[0]), nil, nil); err != nil {
			return err
		}
		_, err := fmt.Fprintf(app.Out, "Pool %q ends with its last machine.\n", args[0])
		return err
	}
	return command(app, "delete POOL", "Let a pool end: nothing more is bought, machines go as they become idle", 1, 1, run)
}
