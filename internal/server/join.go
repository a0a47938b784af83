package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"net/http"
	"path/filepath"

	"github.com/drover-project/drover/internal/claims"
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/fleet/gate"
	"github.com/drover-project/drover/internal/node/fingerprint"
	"github.com/drover-project/drover/internal/optional"
	"github.com/drover-project/drover/internal/server/addresses"
	"github.com/drover-project/drover/internal/tlspin"
)

// openGate makes what decides who may join this server.
func (a *Agent) openGate(c *control) {
	policy := a.cfg.IntroductionPolicy()
	c.gate = gate.New(gate.Config{
		JoinToken: c.joinToken, Certified: a.cfg.TLS != nil && optional.Value(a.cfg.TLS.RPC),
		Strict: policy == config.IntroductionStrict, Warn: policy == config.IntroductionWarn, Own: a.ownAuthority(), Buys: buys(a.cfg),
	}, gate.Deps{
		State: func() gate.State { return c.store.Snapshot() }, Log: gateLog{c}, Clock: a.deps.Clock, Logger: a.deps.Log.With("part", "rpc"),
		Verify: func(token string) (*claims.Claims, error) { return c.issuer.Verify(token) }, // it is made before anybody is served
	})
}

// gateLog is the raft log as the gate writes it.
type gateLog struct{ *control }

// BindNode implements gate.Log.
func (l gateLog) BindNode(ctx context.Context, instance, node string) error {
	_, _, err := l.servers.Propose(ctx, &command.BindFleetNode{Instance: instance, Node: node})
	return err
}

// joinToken returns what nodes must show to this server; "" where they show a certificate of tls.ca_file's authority instead.
func (a *Agent) joinToken() (string, error) {
	return gate.ServerToken(gate.TokenConfig{
		Token: a.cfg.Server.JoinToken, File: a.cfg.Server.JoinTokenFile, Folder: a.dataDir, Pin: a.pin(),
		Certified: a.cfg.TLS != nil && optional.Value(a.cfg.TLS.RPC) && a.ownCert == nil,
	})
}

// tellNodes leaves the token where nodes of the same user on this machine find it, and says how others get it.
func (a *Agent) tellNodes() {
	token := a.control.joinToken
	if token == "" || a.rpc == nil {
		return
	}
	var err error
	if a.told, err = gate.Announce(a.RPCAddr(), tlspin.Join(token, a.pin())); err != nil {
		a.deps.Log.Warn("nodes of this machine must be given the join token, as there is no place to leave it for them", "error", err)
	}
	where, give := "server.join_token", tlspin.Join("TOKEN", a.pin())
	if s := a.cfg.Server; s.JoinToken == "" {
		where = cmp.Or(s.JoinTokenFile, filepath.Join(a.dataDir, gate.TokenFile))
		if s.JoinTokenFile == "" { // it has both
			give = "TOKEN"
		}
	}
	at := addresses.Usable(addresses.Server(a.cfg, a.rpc), fingerprint.Probe(a.dataDir).IP)
	a.deps.Log.Info("nodes of this user on this machine join by themselves, others with the token", "token_in", where,
		"command", "DROVER_JOIN_TOKEN="+give+" drover agent -client -servers "+at+
			" -data-dir DIR") // not as a flag, which everybody on the machine can read
}

// buys reports that the agent may buy machines.
func buys(cfg *config.Agent) bool { return cfg.Fleet != nil && len(cfg.Fleet.Providers) > 0 }

// links returns how the links of nodes are served: behind the gate if they are mutual TLS, and there are nodes to certify.
func (a *Agent) links(next http.Handler) (http.Handler, *tls.Config) {
	mutual := a.live.RPC
	if mutual == nil || !a.certifies() {
		return next, mutual.Listening("h2")
	}
	return gate.Handler(a.control.gate, a.control.front.Current, next), gate.TLS(a.control.gate, mutual.Config)
}
