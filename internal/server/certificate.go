package server

import (
	"context"
	"path/filepath"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/fleet/gate"
	"github.com/drover-project/drover/internal/optional"
	"github.com/drover-project/drover/internal/server/addresses"
	"github.com/drover-project/drover/internal/server/enrol"
	"github.com/drover-project/drover/internal/server/live"
)

// openOwn makes the certificate of a server that does so itself, and has it used. Errors: Invalid.
func (a *Agent) openOwn() (err error) {
	if !a.cfg.AutoTLS() {
		return nil
	}
	folder, names := filepath.Join(a.logFolder(), "tls"), func() []string { return addresses.Certified(a.cfg) }
	a.ownCert, err = gate.OpenOwn(folder, a.cfg.Server.Encrypt, names, a.deps.Clock)
	if err != nil {
		return err
	}
	block := a.cfg.OwnTLS()
	block.CAFile, block.CertFile, block.KeyFile = a.ownCert.CAFile(), a.ownCert.CertFile(), a.ownCert.CertFile()
	a.cfg.TLS = block
	a.deps.Log.Info("the server has an authority of its own", "authority", a.ownCert.Pin(), "file", a.ownCert.CAFile(),
		"https", optional.Value(block.HTTP))
	return a.live.Own(block)
}

// ownAuthority is the server's own authority; nil if the configuration names another one.
func (a *Agent) ownAuthority() *gate.Authority {
	if a.ownCert == nil {
		return nil
	}
	return a.ownCert.Authority()
}

// pin names the server's own authority in join tokens; "" if it has none.
func (a *Agent) pin() string {
	if a.ownCert == nil {
		return ""
	}
	return a.ownCert.Pin()
}

// certifies reports whether nodes get certificates of this server where links are mutual TLS.
func (a *Agent) certifies() bool { return a.ownCert != nil || buys(a.cfg) }

// enroll gets this node a certificate from the server, if it is told which authority the server is known by: a join token names it,
// and the fleet's machines come with it. Errors: Unauthorized, Invalid; Unavailable when no server answered.
func (a *Agent) enroll(ctx context.Context) error {
	if !optional.Value(a.cfg.Client.Enabled) || a.control != nil || a.cfg.TLS != nil && optional.Value(a.cfg.TLS.RPC) {
		return nil
	}
	e, err := enrol.New(ctx, a.cfg, enrol.Deps{
		DataDir: a.dataDir, StateDir: a.stateDir(), Clock: a.deps.Clock, IDs: a.deps.IDs, Log: a.deps.Log,
	})
	if e == nil {
		return err
	}
	needed, err := e.Prepare()
	if err == nil && needed {
		err = e.Run(ctx, e.Ask)
	}
	if e.Pin != "" && drover.CodeOf(err) == drover.Unauthorized {
		err = drover.Errorf(drover.Invalid, "client.join_token: %w", err)
	}
	if err != nil {
		return err
	}
	if e.Secure, err = live.Open(e.Files, "rpc"); err != nil {
		return err
	}
	if a.cfg.TLS == nil {
		a.cfg.TLS = e.Files
	}
	a.enrolls = e
	return nil
}

// renewCertificate renews what the agent got or made itself, until ctx ends.
func (a *Agent) renewCertificate(ctx context.Context) error {
	if a.ownCert != nil {
		return a.ownCert.Run(ctx, a.deps.Log, a.live.TakeOwn)
	}
	return a.enrolls.Keep(ctx, a.enrolls.Ask, func() error { return a.enrolls.Secure.Take(a.enrolls.Files) })
}
