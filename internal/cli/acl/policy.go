package acl

import (
	"context"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
)

const policyPath = "/v1/acl/policy/"

// policyApplyCommand is "drover acl policy apply". It replaces the policy as a whole.
func policyApplyCommand(app *term.App) *cobra.Command {
	p, job := &acl.Policy{}, acl.JobACL{}
	run := func(ctx context.Context, c *api.Client, args []string) error {
		rules, err := app.ReadInput(ctx, args[1])
		if err != nil {
			return err
		}
		p.Name, p.Rules = args[0], string(rules)
		if job != (acl.JobACL{}) {
			p.JobACL = &job
		}
		if err := c.Put(ctx, policyPath+url.PathEscape(p.Name), nil, p, nil); err != nil {
			return err
		}
		_, err = fmt.Fprintf(app.Out, "Successfully wrote %q ACL policy!\n", p.Name)
		return err
	}
	c := term.NomadCommand(app, "apply NAME FILE|-", "Make or change a policy", 2, 2, run)
	term.Describe(c, `
The file has the rules, HCL or JSON. With -job the policy is that of the job's workloads, and no token needs to name it.`, `
drover acl policy apply -description 'may look' look look.policy.hcl
echo 'namespace "dev" { policy = "write" }' | drover acl policy apply dev -`)
	fl := c.Flags()
	fl.StringVar(&p.Description, "description", "", "what it is for")
	fl.StringVar(&job.Namespace, "namespace", "", "namespace of the job that has it")
	fl.StringVar(&job.JobID, "job", "", "job that has it; needs -namespace")
	fl.StringVar(&job.Group, "group", "", "the only task group that has it; needs -job")
	fl.StringVar(&job.Task, "task", "", "the only task that has it; needs -group")
	return c
}

// policyListCommand is "drover acl policy list".
func policyListCommand(app *term.App) *cobra.Command {
	o := &term.Output{}
	c := term.Command(app, "list", "List policies", 0, 0, func(ctx context.Context, app *term.App, _ []string) error {
		return term.List(ctx, app, o, term.Listing[*acl.PolicyStub]{
			Path: "/v1/acl/policies", None: "No policies found", Heading: "Name|Description",
			Row: func(p *acl.PolicyStub) []string { return []string{p.Name, p.Description} },
		})
	})
	o.Bind(c.Flags())
	return c
}

// policySelfCommand is "drover acl policy self".
func policySelfCommand(app *term.App) *cobra.Command {
	o := &term.Output{}
	run := func(ctx context.Context, app *term.App, _ []string) error {
		return term.List(ctx, app, o, term.Listing[*acl.Policy]{
			Path: "/v1/acl/policy/self", None: "No policies found", Heading: "Name|Job ID|Group Name|Task Name",
			Row: func(p *acl.Policy) []string {
				var job acl.JobACL
				if p.JobACL != nil {
					job = *p.JobACL
				}
				return []string{p.Name, job.JobID, job.Group, job.Task}
			},
		})
	}
	c := term.Command(app, "self", "List the policies of the token that is used", 0, 0, run)
	o.Bind(c.Flags())
	return c
}

// policyInfoCommand is "drover acl policy info".
func policyInfoCommand(app *term.App) *cobra.Command {
	o := &term.Output{}
	run := func(ctx context.Context, c *api.Client, args []string) error {
		var p acl.Policy
		if _, err := c.Get(ctx, policyPath+url.PathEscape(args[0]), nil, &p); err != nil {
			return err
		}
		if done, err := o.Data(app.Out, &p); done {
			return err
		}
		facts := []string{
			"Name", p.Name, "Description", none(p.Description), "CreateIndex", fmt.Sprint(p.CreateIndex),
			"ModifyIndex", fmt.Sprint(p.ModifyIndex),
		}
		if j := p.JobACL; j != nil {
			facts = append(facts, "Namespace", j.Namespace, "Job ID", j.JobID, "Group", j.Group, "Task", j.Task)
		}
		if err := term.Facts(app.Out, facts...); err != nil {
			return err
		}
		term.Section(app.Out, "Rules")
		_, err := fmt.Fprintln(app.Out, p.Rules)
		return err
	}
	c := term.NomadCommand(app, "info NAME", "Show a policy", 1, 1, run)
	o.Bind(c.Flags())
	return c
}

// policyDeleteCommand is "drover acl policy delete".
func policyDeleteCommand(app *term.App) *cobra.Command {
	return deleteCommand(app, "delete NAME", "Delete a policy", policyPath, "Successfully deleted %s policy!")
}

// none is what is shown where there is nothing.
func none(text string) string {
	if text == "" {
		return "<none>"
	}
	return text
}
