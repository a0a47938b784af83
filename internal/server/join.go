package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"path/filepath"
	"strconv"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/claims"
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/fleet/gate"
	"github.com/drover-project/drover/internal/node/fingerprint"
	"github.com/drover-project/drover/internal/optional"
	"github.com/drover-project/drover/internal/server/nodes"
	"github.com/drover-project/drover/internal/server/servers"
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

// joinToken returns what nodes must show to this server: what the configuration says, else what was made at the first
// start. It is empty with TLS between agents unless one is configured, or certificates are the server's own: then a node shows a
// certificate of the authority that alone is trusted, which says as much.
func (a *Agent) joinToken() (string, error) {
	s, pin := a.cfg.Server, a.pin()
	if s.JoinToken != "" || s.JoinTokenFile != "" {
		token, err := gate.ConfiguredToken(s.JoinToken, s.JoinTokenFile, "server.join_token_file")
		if err != nil {
			return "", err
		}
		secret, named, err := tlspin.Split(token)
		if err != nil {
			return "", drover.Errorf(drover.Invalid, "server.join_token: %w", err)
		}
		if secret == "" { // it would let everybody in
			return "", drover.Errorf(drover.Invalid, "server.join_token: has no secret before the @")
		}
		if named != "" && named != pin {
			return "", drover.Errorf(drover.Invalid, "server.join_token: it names the authority %s, and this server's own is %s: leave out what "+
				"follows the @, or give this server the files ca.pem and ca-key.pem of the one that is meant", named, cmp.Or(pin, "none"))
		}
		return secret, nil
	}
	if a.cfg.TLS != nil && optional.Value(a.cfg.TLS.RPC) && a.ownCert == nil {
		return "", nil
	}
	return gate.KeptToken(a.dataDir, pin)
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
	a.deps.Log.Info("nodes of this user on this machine join by themselves, others with the token", "token_in", where,
		"command", "DROVER_JOIN_TOKEN="+give+" drover agent -client -servers "+usable(serverAddress(a), fingerprint.Probe(a.dataDir).IP)+
			" -data-dir DIR") // not as a flag, which everybody on the machine can read
}

// serverAddress is what new machines dial: fleet.server, else advertise.rpc, else where this process listens.
func serverAddress(a *Agent) string {
	if a.cfg.Fleet != nil && a.cfg.Fleet.Server != "" {
		return a.cfg.Fleet.Server
	}
	if adv := a.cfg.Advertise; adv != nil && adv.RPC != "" {
		return withPort(adv.RPC, a.rpc)
	}
	return a.RPCAddr()
}

// withPort completes an advertised address with the port on which the listener is.
func withPort(address string, l net.Listener) string {
	if _, _, err := net.SplitHostPort(address); err == nil || l == nil {
		return address
	}
	return net.JoinHostPort(address, strconv.Itoa(int(port(l.Addr()))))
}

// usable returns an address at which a listener can be called, given an address of the machine's: none can be called at
// 0.0.0.0.
func usable(address, machine string) string {
	host, port, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() && machine != "" {
		return net.JoinHostPort(machine, port)
	}
	return address
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

// decidingNodes is the controller of this server while it leads, with what the fleet has to do with nodes.
type decidingNodes struct {
	exchange.Controller
	gate  *gate.Gate
	heard func(nodeID string)
}

// Heartbeat implements exchange.Controller.
func (d decidingNodes) Heartbeat(ctx context.Context, nodeID string) (exchange.Registration, error) {
	reg, err := d.Controller.Heartbeat(ctx, nodeID)
	if err == nil {
		d.heard(nodeID)
	}
	return reg, err
}

// Register implements exchange.Controller. The first node that registers with a machine's token is bound to it for good.
func (d decidingNodes) Register(ctx context.Context, n *drover.Node) (exchange.Registration, error) {
	if err := d.gate.Bind(ctx, n); err != nil {
		return exchange.Registration{}, err
	}
	reg, err := d.Controller.Register(ctx, n)
	if err == nil {
		d.heard(n.ID)
	}
	return reg, err
}

// remoteNodes is the controller as nodes that dial see it. Nothing listens on them: who looks for a node's HTTP
// address, as Nomad's client does for logs and exec, gets this server's, which reaches the node through its tunnel.
type remoteNodes struct {
	*nodes.Front
	servers  *servers.Servers
	httpAddr string
}

// Heartbeat implements exchange.Controller.
func (r remoteNodes) Heartbeat(ctx context.Context, nodeID string) (exchange.Registration, error) {
	reg, err := r.Front.Heartbeat(ctx, nodeID)
	reg.Servers = r.servers.ForNodes()
	return reg, err
}

// Register implements exchange.Controller.
func (r remoteNodes) Register(ctx context.Context, n *drover.Node) (exchange.Registration, error) {
	n.HTTPAddr = r.httpAddr
	reg, err := r.Front.Register(ctx, n)
	reg.Servers = r.servers.ForNodes()
	return reg, err
}
