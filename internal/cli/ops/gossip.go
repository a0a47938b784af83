package ops

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
)

// gossipCommand is "drover operator gossip".
func gossipCommand(app *term.App) *cobra.Command {
	keyring := term.Group("keyring", "Rotate the keys of the servers' gossip", generateKeyCommand(app), listKeysCommand(app),
		keyCommand(app, "install", "Give all servers a key", "All servers have the key."),
		keyCommand(app, "use", "Have all servers encrypt with a key", "All servers encrypt with the key."),
		keyCommand(app, "remove", "Have all servers forget a key", "All servers have forgotten the key."))
	term.Describe(keyring, `Rotates the keys of the servers' gossip. Without TLS between the servers the same keys prove that a server
is one: who has a key that was removed is refused. The servers keep their keys in data_dir/server/serf/keyring, which comes
before server.encrypt.`,
		`NEW=$(drover operator gossip keyring generate)
drover operator gossip keyring install $NEW
drover operator gossip keyring use $NEW
drover operator gossip keyring remove OLD`)
	return term.Group("gossip", "Look after the servers' gossip", keyring)
}

// generateKeyCommand is "drover operator gossip keyring generate".
func generateKeyCommand(app *term.App) *cobra.Command {
	return term.Command(app, "generate", "Print a new key, for server.encrypt or for install", 0, 0,
		func(context.Context, *term.App, []string) error {
			key := make([]byte, 32)
			_, _ = rand.Read(key) // it never fails
			_, err := fmt.Fprintln(app.Out, base64.StdEncoding.EncodeToString(key))
			return err
		})
}

// keys is what the servers said.
type keys struct {
	Messages          map[string]string
	Keys, PrimaryKeys map[string]int
	NumNodes          int
}

// listKeysCommand is "drover operator gossip keyring list".
func listKeysCommand(app *term.App) *cobra.Command {
	o := &term.Output{}
	c := term.NomadCommand(app, "list", "List the keys, and how many servers have each", 0, 0,
		func(ctx context.Context, c *api.Client, _ []string) error {
			var r keys
			if _, err := c.Get(ctx, "/v1/agent/keyring/list", nil, &r); err != nil {
				return err
			}
			if done, err := o.Data(app.Out, r); done {
				return err
			}
			var rows [][]string
			for _, key := range slices.Sorted(maps.Keys(r.Keys)) {
				of := func(n int) string { return fmt.Sprintf("%d of %d", n, r.NumNodes) }
				rows = append(rows, []string{key, of(r.Keys[key]), of(r.PrimaryKeys[key])})
			}
			return term.Table(app.Out, "There are none.", "Key|Servers|Encrypt with it", rows)
		})
	o.Bind(c.Flags())
	return c
}

// keyCommand is a command that changes something about a key at all servers.
func keyCommand(app *term.App, verb, short, done string) *cobra.Command {
	return term.NomadCommand(app, verb+" KEY", short, 1, 1, func(ctx context.Context, c *api.Client, args []string) error {
		if err := c.Put(ctx, "/v1/agent/keyring/"+verb, nil, struct{ Key string }{args[0]}, &keys{}); err != nil {
			return err
		}
		_, err := fmt.Fprintln(app.Out, done)
		return err
	})
}
