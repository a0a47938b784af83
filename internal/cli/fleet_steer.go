package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/config"
)

func (a *App) fleetSteerCommand(word, short string) *cobra.Command {
	reason := ""
	c := leaf(word+" INSTANCE…", short, 1, -1, func(ctx context.Context, args []string) error {
		c, err := a.asksFleet()
		if err != nil {
			return err
		}
		var failed error
		for _, id := range args {
			if err := c.put(ctx, "/v1/fleet/instance/"+url.PathEscape(id)+"/"+word, map[string]string{"Reason": reason}); err != nil {
				failed = errors.Join(failed, err)
				continue
			}
			fmt.Fprintf(a.Out, "%s: %s\n", id, word) // Out's errors are not worth more than the deed
		}
		return failed
	})
	c.Flags().StringVar(&reason, "reason", "", "why, for the audit log")
	return c
}

// fleetInterruptCommand tells what the cloud would: for clouds whose notices come by another way, and to try it.
func (a *App) fleetInterruptCommand() *cobra.Command {
	in := 2 * time.Minute
	c := leaf("interrupt INSTANCE…", "Tell that the cloud takes machines back: others are bought now, work moves before", 1, -1, func(ctx context.Context, args []string) error {
		if in <= 0 {
			return drover.Errorf(drover.Invalid, "-in: must be above 0, got %s", in)
		}
		c, err := a.asksFleet()
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
			fmt.Fprintf(a.Out, "%s: taken back at %s\n", id, at.Format(time.RFC3339)) // Out's errors are not worth more than the deed
		}
		return failed
	})
	c.Flags().DurationVar(&in, "in", in, "when it is taken back, from now")
	return c
}

func (a *App) fleetPauseCommand(word string) *cobra.Command {
	var p fleet.Pause
	short := "Decide again: creates and destroys"
	if word == "pause" {
		short = "Decide nothing more: -creates, -destroys, or both"
	}
	c := leaf(word+" POOL…", short, 1, -1, func(ctx context.Context, args []string) error {
		if word == "pause" && !p.Creates && !p.Destroys {
			p.Creates, p.Destroys = true, true
		}
		c, err := a.asksFleet()
		if err != nil {
			return err
		}
		for _, name := range args {
			if err := c.put(ctx, "/v1/fleet/pool/"+url.PathEscape(name)+"/pause", p); err != nil {
				return err
			}
			fmt.Fprintf(a.Out, "%s: %s\n", name, word) // Out's errors are not worth more than the deed
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
func (a *App) readPools(ctx context.Context, path string) ([]*fleet.Policy, error) {
	data, err := a.readInput(ctx, path)
	if err != nil {
		return nil, err
	}
	return config.ParsePools(data, path)
}

func (a *App) fleetPutCommand() *cobra.Command {
	c := leaf("put FILE", "Make or change the pools of a file", 1, 1, func(ctx context.Context, args []string) error {
		list, err := a.readPools(ctx, args[0])
		if err != nil {
			return err
		}
		c, err := a.asksFleet()
		if err != nil {
			return err
		}
		for _, p := range list {
			if err := c.put(ctx, "/v1/fleet/pool/"+url.PathEscape(p.Name), p); err != nil {
				return err
			}
			fmt.Fprintf(a.Out, "Pool %q is set.\n", p.Name) // Out's errors are not worth more than the deed
		}
		return nil
	})
	with(c, "FILE has pool blocks as in the agent's fleet block, in HCL or JSON; \"-\" is standard input. Machines that run are untouched.", "drover fleet put pool.hcl")
	return c
}

func (a *App) fleetDeleteCommand() *cobra.Command {
	c := leaf("delete POOL", "Let a pool end: nothing more is bought, machines go as they become idle", 1, 1, func(ctx context.Context, args []string) error {
		c, err := a.asksFleet()
		if err != nil {
			return err
		}
		if _, err := c.call(ctx, "DELETE", "/v1/fleet/pool/"+url.PathEscape(args[0]), nil, nil, nil); err != nil {
			return inWords(err)
		}
		_, err = fmt.Fprintf(a.Out, "Pool %q ends with its last machine.\n", args[0])
		return err
	})
	return c
}
