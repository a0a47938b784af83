package acl

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
)

// Command is "drover acl".
func Command(app *term.App) *cobra.Command {
	return term.Group("acl", "Say who may do what: tokens, policies, roles, logins",
		bootstrapCommand(app),
		term.Group("policy", "Name rules", policyApplyCommand(app), policyListCommand(app), policyInfoCommand(app), policySelfCommand(app),
			policyDeleteCommand(app)),
		term.Group("token", "Give people and programs credentials", tokenCreateCommand(app), tokenUpdateCommand(app), tokenListCommand(app),
			tokenInfoCommand(app), tokenSelfCommand(app), tokenDeleteCommand(app)),
		term.Group("role", "Name lists of policies, which tokens are linked to", roleCreateCommand(app), roleUpdateCommand(app),
			roleListCommand(app), roleInfoCommand(app), roleDeleteCommand(app)),
		methodCommands(app), ruleCommands(app),
	)
}

// bootstrapCommand is "drover acl bootstrap".
func bootstrapCommand(app *term.App) *cobra.Command {
	o := &term.Output{}
	run := func(ctx context.Context, c *api.Client, args []string) error {
		var request any
		if len(args) > 0 {
			text, err := app.ReadInput(ctx, args[0])
			if err != nil {
				return err
			}
			request = acl.BootstrapRequest{BootstrapSecret: acl.Secret(strings.TrimSpace(string(text)))}
		}
		return put(ctx, app, c, o, "/v1/acl/bootstrap", request, showToken)
	}
	c := term.NomadCommand(app, "bootstrap [FILE|-]", "Make the first management token", 0, 1, run)
	term.Describe(c, `Makes the first token, which may do everything; it works once. The file has the secret that it is to have, a UUID;
without one the secret is random. To bootstrap again, write the reset index that the refusal names into acl-bootstrap-reset in the folder
of the leading server's log.`, `drover acl bootstrap
drover acl bootstrap -t '{{.SecretID}}'`)
	o.Bind(c.Flags())
	return c
}

// deleteCommand is "delete KEY" of what is at path; said is what is told then, with %s for the key.
func deleteCommand(app *term.App, use, short, path, said string) *cobra.Command {
	return term.NomadCommand(app, use, short, 1, 1, func(ctx context.Context, c *api.Client, args []string) error {
		if err := c.Delete(ctx, path+url.PathEscape(args[0]), nil, nil); err != nil {
			return err
		}
		_, err := fmt.Fprintf(app.Out, said+"\n", args[0])
		return err
	})
}
