package ops

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
	"github.com/drover-project/drover/secrets"
)

// rootCommand is "drover operator root".
func rootCommand(app *term.App) *cobra.Command {
	return term.Group("root", "Look after what encrypts variables and signs identities",
		term.Group("keyring", "Rotate the root keys", rootListCommand(app), rootRotateCommand(app), rootRemoveCommand(app)))
}

// showRootKeys prints a table of root keys.
func showRootKeys(app *term.App, list []*secrets.RootKeyMeta) error {
	var rows [][]string
	for _, k := range list {
		published := "-"
		if k.PublishTime > 0 {
			published = time.Unix(0, k.PublishTime).UTC().Format(time.RFC3339)
		}
		rows = append(rows, []string{k.KeyID, string(k.State), time.Unix(0, k.CreateTime).UTC().Format(time.RFC3339), published})
	}
	return term.Table(app.Out, "There are none.", "Key|State|Create Time|Publish Time", rows)
}

// rootListCommand is "drover operator root keyring list".
func rootListCommand(app *term.App) *cobra.Command {
	o := &term.Output{}
	c := term.NomadCommand(app, "list", "List the root keys", 0, 0, func(ctx context.Context, c *api.Client, _ []string) error {
		var list []*secrets.RootKeyMeta
		if _, err := c.Get(ctx, "/v1/operator/keyring/keys", nil, &list); err != nil {
			return err
		}
		if done, err := o.Data(app.Out, list); done {
			return err
		}
		return showRootKeys(app, list)
	})
	o.Bind(c.Flags())
	return c
}

// rootRotateCommand is "drover operator root keyring rotate".
func rootRotateCommand(app *term.App) *cobra.Command {
	o := &term.Output{}
	var full, prepublish bool
	var after time.Duration
	run := func(ctx context.Context, c *api.Client, _ []string) error {
		if full && prepublish {
			return drover.Errorf(drover.Invalid, "-full and -prepublish: give one of the two")
		}
		q := url.Values{}
		if full {
			q.Set("full", "true")
		}
		if prepublish {
			if after <= 0 {
				return drover.Errorf(drover.Invalid, "-prepublish: it needs -after, such as -after 24h")
			}
			q.Set("publish_time", fmt.Sprint(app.Clock.Now().Add(after).UnixNano()))
		}
		var r struct{ Key *secrets.RootKeyMeta }
		if err := c.Put(ctx, "/v1/operator/keyring/rotate", q, nil, &r); err != nil {
			return err
		}
		if done, err := o.Data(app.Out, r.Key); done {
			return err
		}
		return showRootKeys(app, []*secrets.RootKeyMeta{r.Key})
	}
	c := term.NomadCommand(app, "rotate", "Make a new root key", 0, 0, run)
	term.Describe(c, `Makes a new root key, which encrypts and signs from now on; the former one still opens what it encrypted. With -full all
variables are encrypted again in the background. With -prepublish the key is only told to those who verify identities, and becomes
active later.`, `drover operator root keyring rotate
drover operator root keyring rotate -full
drover operator root keyring rotate -prepublish -after 24h`)
	c.Flags().BoolVar(&full, "full", false, "encrypt all variables with the new key, in the background")
	c.Flags().BoolVar(&prepublish, "prepublish", false, "tell of the key now, and use it later")
	c.Flags().DurationVar(&after, "after", 0, "with -prepublish: when the key becomes active; duration")
	o.Bind(c.Flags())
	return c
}

// rootRemoveCommand is "drover operator root keyring remove".
func rootRemoveCommand(app *term.App) *cobra.Command {
	var force bool
	c := term.NomadCommand(app, "remove KEY", "Remove a root key that nothing needs", 1, 1,
		func(ctx context.Context, c *api.Client, args []string) error {
			q := url.Values{}
			if force {
				q.Set("force", "true")
			}
			if err := c.Delete(ctx, "/v1/operator/keyring/key/"+url.PathEscape(args[0]), q, nil); err != nil {
				return err
			}
			_, err := fmt.Fprintf(app.Out, "Removed encryption key %s\n", args[0])
			return err
		})
	term.Describe(c, `Removes a root key by its whole id. The active one cannot be removed. With -force a key is removed although something
needs it: what it encrypted is lost, and what it signed cannot be verified.`,
		"drover operator root keyring remove 0c2d41cb-8f6a-4a72-9f7d-5b7e3f3a2b11")
	c.Flags().BoolVar(&force, "force", false, "remove it although it is in use")
	return c
}
