package fleet

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/cli/term"
)

// timelineCommand is "drover fleet timeline".
func timelineCommand(app *term.App) *cobra.Command {
	o, pool, since, most := &term.Output{}, "", 24*time.Hour, 100
	run := func(ctx context.Context, c *client, _ []string) error {
		var t fleet.Timeline
		q := url.Values{"pool": {pool}, "since": {since.String()}, "limit": {fmt.Sprint(most)}}
		if err := c.get(ctx, "/v1/fleet/timeline", q, &t); err != nil {
			return err
		}
		if done, err := o.Data(app.Out, t); done {
			return err
		}
		var rows [][]string
		for i := range t.Machines {
			m := &t.Machines[i]
			rows = append(rows, []string{
				o.ID(m.ID), m.Pool, m.State.String(), phases(m.Phases, t.To), money(m.Charged),
				term.OneLine(cmp.Or(m.Bought, "-")), term.OneLine(m.Reason),
			})
		}
		if t.More > 0 {
			fmt.Fprintf(app.Err, "There were %d more: -n shows more of them.\n", t.More)
		}
		return term.Table(app.Out, "No machine was there in that time.", "ID|Pool|State|What it did, for how long|Cost|Bought|Reason",
			rows)
	}
	c := command(app, "timeline", "Show what machines did, how long, and why", 0, 0, run)
	term.Describe(c, `Shows of each machine how long it was asked for, booted, worked, had no work, was drained and returned, why it was
bought, and why it is kept or went. When a machine had work is not kept; "idle" is the last time without. Times of drains and returns
come from the audit log.`,
		"drover fleet timeline\ndrover fleet timeline -pool gpu -since 168h -json")
	o.Bind(c.Flags())
	c.Flags().StringVar(&pool, "pool", "", "only of this pool")
	c.Flags().DurationVar(&since, "since", since, "how far back, at most 720h")
	c.Flags().IntVar(&most, "n", most, "how many machines, those that were asked for last; at most 1000")
	return c
}

// phases says what a machine did one after the other; the last phase lasts until now if it has no end.
func phases(list []fleet.Phase, now time.Time) string {
	said := make([]string, 0, len(list))
	for _, p := range list {
		end := p.To
		if end.IsZero() {
			end = now
		}
		said = append(said, fmt.Sprintf("%s %s", p.Name, term.Span(max(0, end.Sub(p.From)))))
	}
	return strings.Join(said, ", ")
}
