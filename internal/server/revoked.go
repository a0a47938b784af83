package server

import (
	"context"
	"crypto/x509"
	"net"

	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/server/revoked"
	"github.com/drover-project/drover/internal/tables"
)

// openRevoked makes what keeps out who was revoked.
func (a *Agent) openRevoked(c *control) {
	refused := a.metrics.Counter("drover.tls.refused_revoked", "handshakes that were refused, and connections that were closed, as the "+
		"certificate or the node was revoked")
	c.revoked = revoked.New(revoked.Deps{
		Find:    func(id string) *cluster.Revocation { return c.store.Snapshot().Revocation(id) },
		Changed: func() <-chan struct{} { return c.store.Watch(tables.Revocations, "") },
		Refused: func(from net.Addr, r *cluster.Revocation) {
			refused.WithLabelValues().Inc()
			a.refusals().Revoked(from, r)
		},
		Clock: a.deps.Clock, Log: a.deps.Log.With("part", "rpc"),
	})
}

// ownCertificate is what this server shows to others; nil in clear text.
func (a *Agent) ownCertificate() *x509.Certificate {
	cfg := a.live.RPC.Config()
	if cfg == nil || len(cfg.Certificates) == 0 {
		return nil
	}
	return cfg.Certificates[0].Leaf
}

// forgetRevocations forgets those whose certificates have ended while this server leads.
func (c *control) forgetRevocations(ctx context.Context) error {
	c.log.Follow(ctx, func(term context.Context) { c.intake.ForgetRevocations(term, c.logger) })
	return nil
}
