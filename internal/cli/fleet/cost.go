package fleet

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/cli/term"
)

func auditCommand(app *term.App) *cobra.Command {
	o, pool, instance, limit := &term.Output{}, "", "", 50
	c := term.Command(app, "audit", "Show what the fleet and its operators did, and why", 0, 0, func(ctx context.Context, app *term.App, _ []string) error {
		c, err := newClient(app)
		if err != nil {
			return err
		}
		var list []fleet.Audit
		if err := c.get(ctx, "/v1/fleet/audit", url.Values{"pool": {pool}, "instance": {instance}, "limit": {fmt.Sprint(limit)}}, &list); err != nil {
			return err
		}
		if done, err := o.Data(app.Out, list); done {
			return err
		}
		rows := auditRows(list)
		for n := range rows {
			about := o.ID(list[n].Instance)
			if about == "" {
				about = cmp.Or(list[n].Offering, list[n].Provider)
			}
			rows[n] = append([]string{rows[n][0], list[n].Pool, about}, rows[n][1:]...)
		}
		return term.Table(app.Out, "Nothing was done.", "At|Pool|About|What|Why|Reason", rows)
	})
	o.Bind(c.Flags())
	c.Flags().StringVar(&pool, "pool", "", "only of this pool")
	c.Flags().StringVar(&instance, "instance", "", "only of this machine")
	c.Flags().IntVar(&limit, "n", limit, "how many lines, the newest")
	return c
}

func costCommand(app *term.App) *cobra.Command {
	o, by, from := &term.Output{}, "pool", ""
	c := term.Command(app, "cost", "Show what machines cost, by pool, job, day or machine", 0, 0, func(ctx context.Context, app *term.App, _ []string) error {
		c, err := newClient(app)
		if err != nil {
			return err
		}
		var r fleet.CostReport
		if err := c.get(ctx, "/v1/fleet/cost", url.Values{"by": {by}, "from": {from}}, &r); err != nil {
			return err
		}
		if done, err := o.Data(app.Out, r); done {
			return err
		}
		var rows [][]string
		for _, l := range r.Lines {
			key := l.Key
			if by == "machine" {
				key = o.ID(key)
			}
			rows = append(rows, []string{key, l.Pool, fmt.Sprintf("%.4f", l.Cost), fmt.Sprintf("%.2f", l.Hours)})
		}
		if len(rows) > 0 {
			rows = append(rows, []string{"all", "", fmt.Sprintf("%.4f", r.Total), ""})
		}
		return term.Table(app.Out, "Nothing was paid.", strings.ToUpper(by[:min(1, len(by))])+by[min(1, len(by)):]+"|Pool|Cost|Machine hours", rows)
	})
	o.Bind(c.Flags())
	c.Flags().StringVar(&by, "by", by, "pool, job, day or machine")
	c.Flags().StringVar(&from, "from", "", "from this day on, as 2026-01-31")
	return c
}
