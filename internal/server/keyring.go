package server

import (
	"context"

	"github.com/drover-project/drover/internal/control/keyring"
	"github.com/drover-project/drover/internal/control/variables"
	nomadkeys "github.com/drover-project/drover/internal/httpapi/nomad/keys"
	"github.com/drover-project/drover/internal/lifecycle"
	"github.com/drover-project/drover/internal/server/keys"
)

// openKeyring makes the keyring. Its commands go to this server's own log: its faces come here only where it leads.
func (a *Agent) openKeyring(c *control) error {
	blocks, active := a.cfg.KeyringBlocks()
	wrappers, err := keys.Open(blocks, keys.Deps{Folder: a.logFolder(), Servers: c.servers, Clock: a.deps.Clock, Logger: c.logger})
	if err != nil {
		return err
	}
	rotate, keep, collect := a.cfg.RootKeyTimes()
	c.keyring = keyring.New(keyring.Config{RotateAfter: rotate, KeepFor: keep, CollectEach: collect}, keyring.Deps{
		Log: c.log, Store: c.store, Clock: a.deps.Clock, IDs: a.deps.IDs, Wrappers: wrappers, Wraps: active,
		Logger: a.deps.Log.With("part", "keyring"),
	})
	c.variables = variables.New(variables.Deps{
		Log: c.log, Store: c.store, Keyring: c.keyring, Clock: a.deps.Clock, IDs: a.deps.IDs, Logger: a.deps.Log.With("part", "variables"),
	})
	return nil
}

// keyringParts keep the keyring: on every server, and where it leads.
func (c *control) keyringParts() []lifecycle.Part {
	return []lifecycle.Part{
		{Name: "keyring", Run: c.keyring.Run},
		{Name: "keyring's keeper", Run: func(ctx context.Context) error {
			c.log.Follow(ctx, c.keyring.Lead)
			return nil
		}},
		{Name: "locks of variables", Run: func(ctx context.Context) error {
			c.log.Follow(ctx, c.variables.Lead)
			return nil
		}},
	}
}

// nomadKeyring is the keyring as the Nomad face needs it.
func (a *Agent) nomadKeyring() nomadkeys.Config {
	return nomadkeys.Config{Keyring: a.control.keyring, Issuer: a.cfg.Server.OIDCIssuer}
}
