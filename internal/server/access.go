package server

import (
	"context"
	"path/filepath"

	"github.com/go-jose/go-jose/v4"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/control/access"
	"github.com/drover-project/drover/internal/control/idp"
	"github.com/drover-project/drover/internal/httpapi"
	nomadacl "github.com/drover-project/drover/internal/httpapi/nomad/acl"
	"github.com/drover-project/drover/internal/rights"
	"github.com/drover-project/drover/internal/server/callers"
)

// resetFile is where an operator leaves the index with which access control is bootstrapped again: beside the log, as Nomad's.
const resetFile = "acl-bootstrap-reset"

// openAccess makes the use cases of access control. What they write goes to this server's own log: results have secrets, which need not
// travel, and faces come here only where it leads.
func (a *Agent) openAccess(ctx context.Context, c *control) {
	deps := access.Deps{
		Log: c.log, Store: c.store, Clock: a.deps.Clock, IDs: a.deps.IDs, TTL: a.cfg.TokenTTLs(), Follows: a.cfg.Authority(),
		Providers: idp.New(idp.Config{Allow: a.cfg.LoginAllow()}, idp.Deps{Clock: a.deps.Clock, Log: c.logger}), Logger: c.logger,
		Keyring: c.keyring, CollectAfter: config.Duration(a.cfg.Server.TokenGC, 0),
	}
	if !a.forgetful() {
		deps.Reset = access.ResetFile(filepath.Join(a.logFolder(), resetFile))
	}
	c.access = access.New(deps)
	resolver := access.NewResolver(c.store, a.deps.Clock, acl.Secret(a.cfg.APIToken), 0)
	resolver.Believe(func() []jose.JSONWebKey { return c.keyring.PublicKeys() })
	c.tasks = func(alloc *drover.Allocation, task string) (*rights.Caller, error) {
		if !a.cfg.AccessControl() && a.cfg.APIToken == "" { // everybody may do everything
			return &rights.Caller{Token: &acl.Token{AccessorID: "workload/" + alloc.ID + "/" + task}, Rights: rights.Management()}, nil
		}
		return resolver.Task(alloc, task)
	}
	c.tokens = resolver
	if c.servers.Clustered() {
		c.tokens = &callers.Knowing{
			Resolver: c.tokens, Leads: c.servers.Leads, CatchUp: c.servers.Linearize, Clock: a.deps.Clock, Life: context.WithoutCancel(ctx),
		}
	}
}

// resolver says who has a token: as the state knows it, or a server where there is no state; where access control is off, by the
// configuration. Nil: everybody may do everything.
func (a *Agent) resolver() httpapi.Resolver {
	switch one := httpapi.OneToken(a.cfg.APIToken); {
	case !a.cfg.AccessControl() && (one == nil || a.control == nil):
		return one
	case !a.cfg.AccessControl():
		return callers.Besides{One: one, Tasks: a.control.tokens}
	case a.control == nil:
		return a.relay.Resolver(a.cfg.RememberTokens())
	}
	return a.control.tokens
}

// nomadAccess is access control as the Nomad face needs it.
func (a *Agent) nomadAccess() nomadacl.Config {
	s := a.control.store
	return nomadacl.Config{
		Access: a.control.access, Enabled: a.cfg.AccessControl(), Guarded: a.cfg.APIToken != "", Authority: a.cfg.Authority(),
		IsGlobal: func(accessor string) bool {
			t := s.Snapshot().ACLToken(accessor)
			return t != nil && t.Global
		},
	}
}

// sealLogins keeps the secrets of auth methods encrypted while this server leads.
func (c *control) sealLogins(ctx context.Context) error {
	c.log.Follow(ctx, func(term context.Context) { c.access.Lead(term, c.logger) })
	return nil
}

// collectTokens removes expired tokens while this server leads.
func (c *control) collectTokens(ctx context.Context) error {
	c.log.Follow(ctx, func(term context.Context) { c.access.Run(term, c.logger) })
	return nil
}
