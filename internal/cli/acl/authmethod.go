package acl

import (
	"bytes"
	"context"
	"encoding/json"
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

const methodPath = "/v1/acl/auth-method/"

// methodCommands are those of "drover acl auth-method".
func methodCommands(app *term.App) *cobra.Command {
	return term.Group("auth-method", "Say who proves who people and programs are", methodCreateCommand(app), methodUpdateCommand(app),
		methodListCommand(app), infoCommand(app, "info NAME", "Show a way to log in", methodPath, showMethod),
		deleteCommand(app, "delete NAME", "Delete a way to log in", methodPath, "Successfully deleted ACL auth method: %s"))
}

// methodFlags are what a method is made of.
type methodFlags struct {
	method acl.AuthMethod
	ttl    time.Duration
	config string
}

func (f *methodFlags) bind(fl *pflag.FlagSet) {
	fl.StringVar(&f.method.Type, "type", "", "JWT or OIDC")
	fl.StringVar(&f.method.TokenLocality, "token-locality", "", "local or global: where the tokens are known that it gives")
	fl.DurationVar(&f.ttl, "max-token-ttl", 0, "how long they live")
	fl.StringVar(&f.method.TokenNameFormat, "token-name-format", "", "their names; default ${auth_method_type}-${auth_method_name}")
	fl.BoolVar(&f.method.Default, "default", false, "logins that name no method use it")
	fl.StringVar(&f.config, "config", "", "how the provider is asked: JSON, @FILE or - for the standard input")
}

// read completes the method with what the flags say of its configuration.
func (f *methodFlags) read(ctx context.Context, app *term.App) (*acl.AuthMethod, error) {
	m := f.method
	m.MaxTokenTTL = acl.TTL(f.ttl)
	if f.config == "" {
		return &m, nil
	}
	text, err := value(ctx, app, f.config)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&m.Config); err != nil {
		return nil, drover.Errorf(drover.Invalid, "-config: %w", err)
	}
	return &m, nil
}

// value is a flag's value: as it stands, of a file (@FILE), or of the standard input (-).
func value(ctx context.Context, app *term.App, flag string) ([]byte, error) {
	if file, ok := strings.CutPrefix(flag, "@"); ok {
		return app.ReadInput(ctx, file)
	}
	if flag == "-" {
		return app.ReadInput(ctx, "-")
	}
	return []byte(flag), nil
}

// showMethod shows a method without its secrets.
func showMethod(app *term.App, o *term.Output, m *acl.AuthMethod) error {
	if done, err := o.Data(app.Out, m.WithoutSecrets()); done {
		return err
	}
	facts := []string{
		"Name", m.Name, "Type", m.Type, "Locality", m.TokenLocality, "Max Token TTL", m.MaxTokenTTL.String(),
		"Token Name Format", m.TokenNameFormat, "Default", strconv.FormatBool(m.Default),
		"Create Index", fmt.Sprint(m.CreateIndex), "Modify Index", fmt.Sprint(m.ModifyIndex),
	}
	if err := term.Facts(app.Out, facts...); err != nil || m.Config == nil {
		return err
	}
	term.Section(app.Out, "Auth Method Config")
	c, list := m.Config, func(s []string) string { return none(strings.Join(s, ",")) }
	return term.Facts(app.Out, "JWT Validation Public Keys", strconv.Itoa(len(c.JWTValidationPubKeys)), "JWKS URL", none(c.JWKSURL),
		"OIDC Discovery URL", none(c.OIDCDiscoveryURL), "OIDC Client ID", none(c.OIDCClientID),
		"OIDC Enable PKCE", strconv.FormatBool(c.OIDCEnablePKCE), "OIDC Disable UserInfo", strconv.FormatBool(c.OIDCDisableUserInfo),
		"OIDC Scopes", list(c.OIDCScopes), "Bound audiences", list(c.BoundAudiences), "Bound issuer", list(c.BoundIssuer),
		"Allowed redirects URIs", list(c.AllowedRedirectURIs), "Signing algorithms", list(c.SigningAlgs),
		"Claim mappings", none(term.Pairs(c.ClaimMappings)), "List claim mappings", none(term.Pairs(c.ListClaimMappings)))
}

// methodCreateCommand is "drover acl auth-method create".
func methodCreateCommand(app *term.App) *cobra.Command {
	o, f := &term.Output{}, &methodFlags{}
	run := func(ctx context.Context, c *api.Client, _ []string) error {
		if f.method.Name == "" || f.method.Type == "" || f.method.TokenLocality == "" || f.ttl == 0 || f.config == "" {
			return drover.Errorf(drover.Invalid, "an auth method needs -name, -type, -token-locality, -max-token-ttl and -config")
		}
		m, err := f.read(ctx, app)
		if err != nil {
			return err
		}
		return put(ctx, app, c, o, "/v1/acl/auth-method", m, showMethod)
	}
	c := term.NomadCommand(app, "create", "Make a way to log in", 0, 0, run)
	term.Describe(c, `Makes a way to log in with the tokens of an identity provider. Binding rules say what a login gives; without
one it gives nothing. The configuration has Nomad's names.`,
		`drover acl auth-method create -name ci -type JWT -token-locality local -max-token-ttl 1h -config @ci.json`)
	c.Flags().StringVar(&f.method.Name, "name", "", "its name")
	f.bind(c.Flags())
	o.Bind(c.Flags())
	return c
}

// methodUpdateCommand is "drover acl auth-method update".
func methodUpdateCommand(app *term.App) *cobra.Command {
	o, f := &term.Output{}, &methodFlags{}
	c := term.Command(app, "update NAME", "Change a way to log in", 1, 1, nil)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		client, err := app.Nomad()
		if err != nil {
			return err
		}
		m, err := f.read(cmd.Context(), app)
		if err != nil {
			return err
		}
		m.Name = args[0]
		path := methodPath + url.PathEscape(args[0])
		var old acl.AuthMethod
		if _, err := client.Get(cmd.Context(), path, nil, &old); err != nil {
			return err
		}
		if !cmd.Flags().Changed("default") {
			m.Default = old.Default
		}
		if m.Config == nil {
			m.Config = old.Config
		}
		return put(cmd.Context(), app, client, o, path, m, showMethod)
	}
	term.Describe(c, "Changes what flags say, and leaves the rest as it is, also of the configuration.", "")
	f.bind(c.Flags())
	o.Bind(c.Flags())
	return c
}

// methodListCommand is "drover acl auth-method list".
func methodListCommand(app *term.App) *cobra.Command {
	o := &term.Output{}
	c := term.Command(app, "list", "List the ways to log in", 0, 0, func(ctx context.Context, app *term.App, _ []string) error {
		return term.List(ctx, app, o, term.Listing[*acl.AuthMethodStub]{
			Path: "/v1/acl/auth-methods", None: "No ACL auth methods found", Heading: "Name|Type|Default",
			Row: func(m *acl.AuthMethodStub) []string { return []string{m.Name, m.Type, strconv.FormatBool(m.Default)} },
		})
	})
	o.Bind(c.Flags())
	return c
}
