package job

import (
	"context"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
)

// ScalingCommand is "drover scaling": what groups' scaling blocks say, which autoscalers read.
func ScalingCommand(app *term.App) *cobra.Command {
	return term.Group("scaling", "Look at the scaling blocks of jobs, as autoscalers see them",
		term.Group("policy", "Look at the policies of groups", policyListCommand(app), policyInfoCommand(app)))
}

// policyStub is a policy as lists have it.
type policyStub struct {
	ID, Type                 string
	Enabled                  bool
	Target                   map[string]string
	CreateIndex, ModifyIndex uint64
}

// policyListCommand is "drover scaling policy list".
func policyListCommand(app *term.App) *cobra.Command {
	o, job, kind := &term.Output{}, "", ""
	c := term.Command(app, "list", "List policies", 0, 0, func(ctx context.Context, app *term.App, _ []string) error {
		return term.List(ctx, app, o, term.Listing[*policyStub]{
			Path: "/v1/scaling/policies", Query: api.Query("job", job, "type", kind), None: "No group of a job has a scaling block.",
			Heading: "ID|Enabled|Type|Namespace|Job|Group",
			Row: func(p *policyStub) []string {
				return []string{p.ID, term.YesNo(p.Enabled), p.Type, p.Target["Namespace"], p.Target["Job"], p.Target["Group"]}
			},
		})
	})
	c.Flags().StringVar(&job, "job", "", "only of this job")
	c.Flags().StringVar(&kind, "type", "", "only of this type, such as horizontal")
	o.Bind(c.Flags())
	return c
}

// policyInfoCommand is "drover scaling policy info".
func policyInfoCommand(app *term.App) *cobra.Command {
	o := &term.Output{}
	run := func(ctx context.Context, c *api.Client, args []string) error {
		var p drover.ScalingPolicy
		if _, err := c.Get(ctx, "/v1/scaling/policy/"+url.PathEscape(args[0]), nil, &p); err != nil {
			return err
		}
		if done, err := o.Data(app.Out, p); done {
			return err
		}
		if err := term.Facts(app.Out, "ID", p.ID, "Enabled", term.YesNo(p.Enabled == nil || *p.Enabled), "Type", p.Type,
			"Target", term.Pairs(p.Target), "Min", number(p.Min), "Max", number(p.Max)); err != nil || len(p.Policy) == 0 {
			return err
		}
		term.Section(app.Out, "Policy")
		return term.PrintJSON(app.Out, p.Policy)
	}
	c := term.NomadCommand(app, "info POLICY", "Show a policy", 1, 1, run)
	o.Bind(c.Flags())
	return c
}

// number is the text of a bound; "" if there is none.
func number(n *int64) string {
	if n == nil {
		return ""
	}
	return fmt.Sprint(*n)
}
