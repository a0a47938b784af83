package acl

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
)

const rolePath = "/v1/acl/role/"

// showRole shows a role.
func showRole(app *term.App, o *term.Output, r *acl.Role) error {
	if done, err := o.Data(app.Out, r); done {
		return err
	}
	return term.Facts(app.Out, "ID", r.ID, "Name", r.Name, "Description", none(r.Description), "Policies", policyNames(r.Policies),
		"Create Index", fmt.Sprint(r.CreateIndex), "Modify Index", fmt.Sprint(r.ModifyIndex))
}

func policyNames(links []*acl.RolePolicy) string {
	var names []string
	for _, l := range links {
		names = append(names, l.Name)
	}
	return strings.Join(names, ",")
}

// policyLinks are the links to policies of the names.
func policyLinks(names []string) (links []*acl.RolePolicy) {
	for _, n := range names {
		links = append(links, &acl.RolePolicy{Name: n})
	}
	return links
}

// roleCreateCommand is "drover acl role create".
func roleCreateCommand(app *term.App) *cobra.Command {
	o, r := &term.Output{}, &acl.Role{}
	var policies []string
	run := func(ctx context.Context, c *api.Client, _ []string) error {
		if r.Name == "" || len(policies) == 0 {
			return drover.Errorf(drover.Invalid, "a role needs -name, and -policy at least once")
		}
		r.Policies = policyLinks(policies)
		return put(ctx, app, c, o, "/v1/acl/role", r, showRole)
	}
	c := term.NomadCommand(app, "create", "Make a role", 0, 0, run)
	c.Flags().StringVar(&r.Name, "name", "", "its name, which no other role has")
	c.Flags().StringVar(&r.Description, "description", "", "what it is for")
	c.Flags().StringArrayVar(&policies, "policy", nil, "a policy that it has; can be repeated")
	o.Bind(c.Flags())
	return c
}

// roleUpdateCommand is "drover acl role update".
func roleUpdateCommand(app *term.App) *cobra.Command {
	o := &term.Output{}
	var given acl.Role
	var policies []string
	var whole bool
	run := func(ctx context.Context, c *api.Client, args []string) error {
		given.ID, given.Policies = args[0], policyLinks(policies)
		path, next := rolePath+url.PathEscape(args[0]), given
		if !whole {
			var old acl.Role
			if _, err := c.Get(ctx, path, nil, &old); err != nil {
				return err
			}
			next = merged(old, given)
		}
		return put(ctx, app, c, o, path, &next, showRole)
	}
	c := term.NomadCommand(app, "update ID", "Change a role", 1, 1, run)
	term.Describe(c, "Changes what flags say, and adds the policies to those that there are. With -no-merge the role is what flags say.", "")
	c.Flags().StringVar(&given.Name, "name", "", "its name")
	c.Flags().StringVar(&given.Description, "description", "", "what it is for")
	c.Flags().StringArrayVar(&policies, "policy", nil, "a policy that it has; can be repeated")
	c.Flags().BoolVar(&whole, "no-merge", false, "replace the role as a whole")
	o.Bind(c.Flags())
	return c
}

// merged is the old role with what was given.
func merged(old, given acl.Role) acl.Role {
	if given.Name != "" {
		old.Name = given.Name
	}
	if given.Description != "" {
		old.Description = given.Description
	}
	old.Policies = append(slices.Clone(old.Policies), given.Policies...)
	return old
}

// roleListCommand is "drover acl role list".
func roleListCommand(app *term.App) *cobra.Command {
	o := &term.Output{}
	c := term.Command(app, "list", "List roles", 0, 0, func(ctx context.Context, app *term.App, _ []string) error {
		return term.List(ctx, app, o, term.Listing[*acl.RoleStub]{
			Path: "/v1/acl/roles", None: "No ACL roles found", Heading: "ID|Name|Description|Policies",
			Row: func(r *acl.RoleStub) []string { return []string{r.ID, r.Name, r.Description, policyNames(r.Policies)} },
		})
	})
	o.Bind(c.Flags())
	return c
}

// roleInfoCommand is "drover acl role info".
func roleInfoCommand(app *term.App) *cobra.Command {
	o := &term.Output{}
	var byName bool
	run := func(ctx context.Context, c *api.Client, args []string) error {
		path := rolePath + url.PathEscape(args[0])
		if byName {
			path = rolePath + "name/" + url.PathEscape(args[0])
		}
		var r acl.Role
		if _, err := c.Get(ctx, path, nil, &r); err != nil {
			return err
		}
		return showRole(app, o, &r)
	}
	c := term.NomadCommand(app, "info ID", "Show a role", 1, 1, run)
	c.Flags().BoolVar(&byName, "by-name", false, "the argument is the role's name")
	o.Bind(c.Flags())
	return c
}

// roleDeleteCommand is "drover acl role delete".
func roleDeleteCommand(app *term.App) *cobra.Command {
	return deleteCommand(app, "delete ID", "Delete a role", rolePath, "ACL role %s successfully deleted")
}
