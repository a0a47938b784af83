package acl

import (
	"context"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
)

const rulePath = "/v1/acl/binding-rule/"

// ruleCommands are those of "drover acl binding-rule".
func ruleCommands(app *term.App) *cobra.Command {
	return term.Group("binding-rule", "Say what logins give", ruleCreateCommand(app), ruleUpdateCommand(app), ruleListCommand(app),
		infoCommand(app, "info ID", "Show a binding rule", rulePath, showRule),
		deleteCommand(app, "delete ID", "Delete a binding rule", rulePath, "Successfully deleted ACL binding rule: %s"))
}

// bindRule adds the flags that creating and updating share.
func bindRule(fl *pflag.FlagSet, b *acl.BindingRule) {
	fl.StringVar(&b.Description, "description", "", "what it is for")
	fl.StringVar(&b.Selector, "selector", "", "whom it is for, as in 'value.ref == main'; none is everybody")
	fl.StringVar(&b.BindType, "bind-type", "", "role, policy or management")
	fl.StringVar(&b.BindName, "bind-name", "", "of the role or policy; may have ${value.NAME}")
}

func showRule(app *term.App, o *term.Output, b *acl.BindingRule) error {
	if done, err := o.Data(app.Out, b); done {
		return err
	}
	return term.Facts(app.Out, "ID", b.ID, "Description", none(b.Description), "Auth Method", b.AuthMethod,
		"Selector", none(b.Selector), "Bind Type", b.BindType, "Bind Name", none(b.BindName), "Create Time", term.Stamp(b.CreateTime),
		"Modify Time", term.Stamp(b.ModifyTime), "Create Index", fmt.Sprint(b.CreateIndex), "Modify Index", fmt.Sprint(b.ModifyIndex))
}

// ruleCreateCommand is "drover acl binding-rule create".
func ruleCreateCommand(app *term.App) *cobra.Command {
	o, b := &term.Output{}, &acl.BindingRule{}
	run := func(ctx context.Context, c *api.Client, _ []string) error {
		if b.AuthMethod == "" || b.BindType == "" {
			return drover.Errorf(drover.Invalid, "a binding rule needs -auth-method and -bind-type")
		}
		return put(ctx, app, c, o, "/v1/acl/binding-rule", b, showRule)
	}
	c := term.NomadCommand(app, "create", "Make a binding rule", 0, 0, run)
	term.Describe(c, `Gives those who log in with an auth method, and whom the selector takes, a role, a policy or everything. A login
gets what all rules give together.`,
		`drover acl binding-rule create -auth-method ci -selector 'value.repository == "shop/web"' -bind-type policy -bind-name deploy`)
	c.Flags().StringVar(&b.AuthMethod, "auth-method", "", "the way to log in that it is for")
	bindRule(c.Flags(), b)
	o.Bind(c.Flags())
	return c
}

// ruleUpdateCommand is "drover acl binding-rule update".
func ruleUpdateCommand(app *term.App) *cobra.Command {
	o, b := &term.Output{}, &acl.BindingRule{}
	run := func(ctx context.Context, c *api.Client, args []string) error {
		b.ID = args[0]
		return put(ctx, app, c, o, rulePath+url.PathEscape(args[0]), b, showRule)
	}
	c := term.NomadCommand(app, "update ID", "Change a binding rule", 1, 1, run)
	term.Describe(c, "Changes what flags say, and leaves the rest as it is. For a rule without a selector delete it and make another one.", "")
	bindRule(c.Flags(), b)
	o.Bind(c.Flags())
	return c
}

// ruleListCommand is "drover acl binding-rule list".
func ruleListCommand(app *term.App) *cobra.Command {
	o := &term.Output{}
	c := term.Command(app, "list", "List binding rules", 0, 0, func(ctx context.Context, app *term.App, _ []string) error {
		return term.List(ctx, app, o, term.Listing[*acl.BindingRuleStub]{
			Path: "/v1/acl/binding-rules", None: "No ACL binding rules found", Heading: "ID|Description|Auth Method",
			Row: func(b *acl.BindingRuleStub) []string { return []string{b.ID, b.Description, b.AuthMethod} },
		})
	})
	o.Bind(c.Flags())
	return c
}
