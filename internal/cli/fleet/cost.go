package fleet

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/cli/term"
)

// auditCommand is "drover fleet audit": decisions of the fleet and orders of operators, the newest last, as in a
// log.
func auditCommand(app *term.App) *cobra.Command {
	o, pool, instance, limit := &term.Output{}, "", "", 50
	run := func(ctx context.Context, c *client, _ []string) error {
		var list []fleet.Audit
		q := url.Values{"pool": {pool}, "instance": {instance}, "limit": {fmt.Sprint(limit)}}
		if err := c.get(ctx, "/v1/fleet/audit", q, &list); err != nil {
			return err
		}
		if done, err := o.Data(app.Out, list); done {
			return err
		}
		rows := auditRows(list)
		for n := range rows {
			about := o.ID(list[n].Instance)
			if about == "" {
				// An entry without a machine is about an offering, such as one without capacity, or about a whole provider.
				about = cmp.Or(list[n].Offering, list[n].Provider)
			}
			rows[n] = append([]string{rows[n][0], list[n].Pool, about}, rows[n][1:]...)
		}
		return term.Table(app.Out, "Nothing was done.", "At|Pool|About|What|Why|Reason", rows)
	}
	c := command(app, "audit", "Show what the fleet and its operators did, and why", 0, 0, run)
	o.Bind(c.Flags())
	c.Flags().StringVar(&pool, "pool", "", "only of this pool")
	c.Flags().StringVar(&instance, "instance", "", "only of this machine")
	c.Flags().IntVar(&limit, "n", limit, "how many lines, the newest")
	return c
}

// costCommand is "drover fleet cost". Amounts have no currency, as the prices of the policies have none. The last row
// is the total.
func costCommand(app *term.App) *cobra.Command {
	o, by, from := &term.Output{}, "pool", ""
	run := func(ctx context.Context, c *client, _ []string) error {
		var r fleet.CostReport
		if err := c.get(ctx, "/v1/fleet/cost", url.Values{"by": {by}, "from": {from}}, &r); err != nil {
			return err
		}
		if done, err := o.Data(app.Out, r); done {
			return err
		}
		heads := strings.Split(by, ",") // the flag's words; they may be empty
		for i, word := range heads {
			first := min(1, len(word))
			heads[i] = strings.ToUpper(word[:first]) + word[first:]
		}
		var rows [][]string
		two := len(heads) > 1
		for _, l := range r.Lines {
			key := l.Key
			if by == "machine" {
				key = o.ID(key)
			}
			row := []string{key, l.Pool, fmt.Sprintf("%.4f", l.Cost), fmt.Sprintf("%.2f", l.Hours)}
			if two {
				row = slices.Insert(row, 1, l.Of)
			}
			rows = append(rows, row)
		}
		if len(rows) > 0 {
			rows = append(rows, slices.Insert([]string{"all", "", fmt.Sprintf("%.4f", r.Total), ""}, 1, make([]string, len(heads)-1)...))
		}
		return term.Table(app.Out, "Nothing was paid.", strings.Join(heads, "|")+"|Pool|Cost|Machine hours", rows)
	}
	c := command(app, "cost", "Show what machines cost, by pool, job, namespace, day or machine", 0, 0, run)
	o.Bind(c.Flags())
	c.Flags().StringVar(&by, "by", by, "pool, job, namespace, day or machine; or two of the first four, as day,job")
	c.Flags().StringVar(&from, "from", "", "from this day on, as 2026-01-31")
	return c
}
