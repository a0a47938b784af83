package enrol

import (
	"cmp"
	"context"
	"crypto/tls"
	"log/slog"
	"path/filepath"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/link"
	"github.com/drover-project/drover/internal/node/agent"
	"github.com/drover-project/drover/internal/node/machine"
	"github.com/drover-project/drover/internal/peer"
	"github.com/drover-project/drover/internal/server/live"
	"github.com/drover-project/drover/internal/tlspin"
)

// Deps is what enrolling needs.
type Deps struct {
	DataDir  string
	StateDir string // where the node has its identity
	Clock    clock.Clock
	IDs      id.Source
	Log      *slog.Logger
}

// Enrolling is how this node gets its certificate.
type Enrolling struct {
	*machine.Enrollment
	Files  *config.TLS
	Secure *live.TLS // with the newest certificate
	Ask    machine.AskFunc
}

// New is how this node can get a certificate; nil if it is told of no authority. Errors: Invalid; those of the node's identity.
func New(ctx context.Context, cfg *config.Agent, d Deps) (*Enrolling, error) {
	c := cfg.Client
	list, m := c.ServerList(), cmp.Or(c.Machine, &config.Machine{})
	token, err := JoinToken(ctx, c, list[0])
	if err != nil {
		return nil, err
	}
	secret, pin, err := tlspin.Split(token)
	if err != nil {
		return nil, drover.Errorf(drover.Invalid, "client.join_token: %w", err)
	}
	if m.Authority == "" && pin == "" || m.Authority != "" && cfg.TLS != nil {
		return nil, nil
	}
	who, err := agent.ReadIdentity(agent.Config{DataDir: d.DataDir, StateDir: d.StateDir}, d.IDs)
	if err != nil {
		return nil, err
	}
	e := &Enrolling{Enrollment: &machine.Enrollment{
		Folder: filepath.Join(d.StateDir, "tls"), Authority: m.Authority, Pin: pin, Name: peer.ServerNames(cfg.Region)[0],
		Servers: list, DeadAfter: config.Duration(m.DeadAfter, 0), PowerOff: m.PowerOff, Clock: d.Clock, Log: d.Log,
	}}
	e.Files = &config.TLS{RPC: new(true), CAFile: e.CAFile(), CertFile: e.CertFile(), KeyFile: e.CertFile()}
	e.Ask = func(ctx context.Context, server string, secure *tls.Config, csr []byte) ([]byte, error) {
		tokens, err := Tokens(ctx, c, d.StateDir, server)
		if err != nil {
			return nil, err
		}
		tokens.Join = cmp.Or(tokens.Join, secret) // the server that left it may have gone
		hc := link.NewHTTPClient(secure)
		defer hc.CloseIdleConnections()
		return link.Enroll(ctx, hc, "https://"+server, link.Applicant{NodeID: who.ID, Secret: who.Secret, Tokens: tokens}, csr)
	}
	return e, nil
}
