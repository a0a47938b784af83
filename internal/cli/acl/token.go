package acl

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
)

const tokenPath = "/v1/acl/token/"

// shownToken is a token whose secret is printed: its owner asked for it.
type shownToken struct {
	*acl.Token
	SecretID string `json:",omitempty"`
}

// showToken shows a token with its secret.
func showToken(app *term.App, o *term.Output, t *acl.Token) error {
	if done, err := o.Data(app.Out, shownToken{t, string(t.SecretID)}); done {
		return err
	}
	policies, roles := "n/a", "n/a"
	if t.Type != acl.ManagementToken {
		policies, roles = fmt.Sprint(t.Policies), roleNames(t.Roles)
	}
	return term.Facts(app.Out, "Accessor ID", t.AccessorID, "Secret ID", string(t.SecretID), "Name", none(t.Name), "Type", t.Type,
		"Global", strconv.FormatBool(t.Global), "Create Time", term.Stamp(t.CreateTime), "Expiry Time", expiry(t.ExpirationTime),
		"Create Index", fmt.Sprint(t.CreateIndex), "Modify Index", fmt.Sprint(t.ModifyIndex), "Policies", policies, "Roles", roles)
}

// roleNames are the roles as "name (id)".
func roleNames(roles []*acl.TokenRole) string {
	var names []string
	for _, r := range roles {
		names = append(names, fmt.Sprintf("%s (%s)", r.Name, r.ID))
	}
	return "[" + strings.Join(names, " ") + "]"
}

// expiry is when a token ends.
func expiry(end *time.Time) string {
	if end == nil {
		return "<none>"
	}
	return term.Stamp(*end)
}

// tokenFlags are what a token is made of.
type tokenFlags struct {
	name, kind         string
	policies           []string
	roleIDs, roleNames []string
	global             bool
	ttl                time.Duration
}

// bind adds the flags that creating and updating share.
func (f *tokenFlags) bind(fl *pflag.FlagSet) {
	fl.StringVar(&f.name, "name", "", "what people know it by")
	fl.StringVar(&f.kind, "type", acl.ClientToken, "client or management")
	fl.BoolVar(&f.global, "global", false, "known in all regions")
	fl.StringArrayVar(&f.policies, "policy", nil, "a policy of a client token; can be repeated")
	fl.StringArrayVar(&f.roleIDs, "role-id", nil, "a role of a client token; can be repeated")
	fl.StringArrayVar(&f.roleNames, "role-name", nil, "the same by name; can be repeated")
}

// roles are the links that the flags ask for.
func (f *tokenFlags) roles() (links []*acl.TokenRole) {
	for _, id := range f.roleIDs {
		links = append(links, &acl.TokenRole{ID: id})
	}
	for _, name := range f.roleNames {
		links = append(links, &acl.TokenRole{Name: name})
	}
	return links
}

// tokenCreateCommand is "drover acl token create".
func tokenCreateCommand(app *term.App) *cobra.Command {
	o, f := &term.Output{}, &tokenFlags{}
	run := func(ctx context.Context, c *api.Client, _ []string) error {
		return put(ctx, app, c, o, "/v1/acl/token", &acl.Token{
			Name: f.name, Type: f.kind, Policies: f.policies, Roles: f.roles(), Global: f.global, ExpirationTTL: acl.TTL(f.ttl),
		}, showToken)
	}
	c := term.NomadCommand(app, "create", "Make a token", 0, 0, run)
	term.Describe(c, "Makes a token and prints its secret.", `drover acl token create -name ci -policy deploy -ttl 8h
drover acl token create -type management -t '{{.SecretID}}'`)
	f.bind(c.Flags())
	c.Flags().DurationVar(&f.ttl, "ttl", 0, "how long it lives; 0 is for ever")
	o.Bind(c.Flags())
	return c
}

// tokenUpdateCommand is "drover acl token update". It changes what flags say, and leaves the rest as it is.
func tokenUpdateCommand(app *term.App) *cobra.Command {
	o, f := &term.Output{}, &tokenFlags{}
	c := term.Command(app, "update ACCESSOR", "Change a token", 1, 1, nil)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		client, err := app.Nomad()
		if err != nil {
			return err
		}
		var t acl.Token
		path, given := tokenPath+url.PathEscape(args[0]), cmd.Flags().Changed
		if _, err := client.Get(cmd.Context(), path, nil, &t); err != nil {
			return err
		}
		if given("name") {
			t.Name = f.name
		}
		if given("type") {
			t.Type = f.kind
		}
		if given("global") {
			t.Global = f.global
		}
		if given("policy") {
			t.Policies = f.policies
		}
		if given("role-id") || given("role-name") {
			t.Roles = f.roles()
		}
		return put(cmd.Context(), app, client, o, path, &t, showToken)
	}
	term.Describe(c, "Changes what flags say, and leaves the rest as it is. -policy and -role-… replace all that there were.", "")
	f.bind(c.Flags())
	o.Bind(c.Flags())
	return c
}

// tokenListCommand is "drover acl token list".
func tokenListCommand(app *term.App) *cobra.Command {
	o := &term.Output{}
	var perPage int
	var page, filter string
	run := func(ctx context.Context, c *api.Client, _ []string) error {
		query := url.Values{}
		for key, value := range map[string]string{"next_token": page, "filter": filter} {
			if value != "" {
				query.Set(key, value)
			}
		}
		if perPage > 0 {
			query.Set("per_page", strconv.Itoa(perPage))
		}
		var list []*acl.TokenStub
		header, err := c.Call(ctx, "GET", "/v1/acl/tokens", query, nil, &list)
		if err != nil {
			return err
		}
		if done, err := o.Data(app.Out, list); done {
			return err
		}
		var rows [][]string
		for _, t := range list {
			rows = append(rows, []string{
				t.Name, t.Type, strconv.FormatBool(t.Global), t.AccessorID, expiry(t.ExpirationTime), strconv.FormatBool(ended(app, t)),
			})
		}
		if err := term.Table(app.Out, "No tokens found", "Name|Type|Global|Accessor ID|Expiry|Expired", rows); err != nil {
			return err
		}
		if next := header.Get("X-Nomad-NextToken"); next != "" {
			_, err = fmt.Fprintf(app.Out, "\nThere are more: -page-token %s\n", next)
		}
		return err
	}
	c := term.NomadCommand(app, "list", "List tokens", 0, 0, run)
	c.Flags().IntVar(&perPage, "per-page", 0, "how many are shown; 0 is all")
	c.Flags().StringVar(&page, "page-token", "", "where the page begins, as the page before it says")
	c.Flags().StringVar(&filter, "filter", "", `an expression, as in 'Type == "client"'`)
	o.Bind(c.Flags())
	return c
}

// ended reports whether the token's end is past.
func ended(app *term.App, t *acl.TokenStub) bool {
	return t.ExpirationTime != nil && !app.Clock.Now().Before(*t.ExpirationTime)
}

// tokenInfoCommand is "drover acl token info".
func tokenInfoCommand(app *term.App) *cobra.Command {
	o := &term.Output{}
	run := func(ctx context.Context, c *api.Client, args []string) error {
		return readToken(ctx, app, c, o, tokenPath+url.PathEscape(args[0]))
	}
	c := term.NomadCommand(app, "info ACCESSOR", "Show a token", 1, 1, run)
	o.Bind(c.Flags())
	return c
}

// tokenSelfCommand is "drover acl token self".
func tokenSelfCommand(app *term.App) *cobra.Command {
	o := &term.Output{}
	run := func(ctx context.Context, c *api.Client, _ []string) error {
		if c.Token == "" {
			return drover.Errorf(drover.Unauthorized, "No token present in the environment: give it with -token or DROVER_TOKEN (NOMAD_TOKEN)")
		}
		return readToken(ctx, app, c, o, tokenPath+"self")
	}
	c := term.NomadCommand(app, "self", "Show the token that is used", 0, 0, run)
	o.Bind(c.Flags())
	return c
}

// readToken reads a token and shows it.
func readToken(ctx context.Context, app *term.App, c *api.Client, o *term.Output, path string) error {
	var t acl.Token
	if _, err := c.Get(ctx, path, nil, &t); err != nil {
		return err
	}
	return showToken(app, o, &t)
}

// tokenDeleteCommand is "drover acl token delete".
func tokenDeleteCommand(app *term.App) *cobra.Command {
	return deleteCommand(app, "delete ACCESSOR", "Delete a token", tokenPath, "Token %s successfully deleted")
}
