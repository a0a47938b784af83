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
	"github.com/drover-project/drover/internal/link"
	"github.com/drover-project/drover/internal/node/agent"
	"github.com/drover-project/drover/internal/node/fingerprint"
	"github.com/drover-project/drover/internal/node/machine"
	"github.com/drover-project/drover/internal/optional"
	"github.com/drover-project/drover/internal/server/nodes"
	"github.com/drover-project/drover/internal/server/servers"
)

// openGate makes what decides who may join this server.
func (a *Agent) openGate(c *control) {
	policy := a.cfg.IntroductionPolicy()
	c.gate = gate.New(gate.Config{
		JoinToken: c.joinToken, Certified: a.cfg.TLS != nil && optional.Value(a.cfg.TLS.RPC),
		Strict: policy == config.IntroductionStrict, Warn: policy == config.IntroductionWarn,
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
// start. It is empty with TLS between agents unless one is configured: then a node shows a certificate of the authority
// that alone is trusted, which says as much.
func (a *Agent) joinToken() (string, error) {
	s := a.cfg.Server
	if s.JoinToken != "" || s.JoinTokenFile != "" {
		return gate.ConfiguredToken(s.JoinToken, s.JoinTokenFile, "server.join_token_file")
	}
	if a.cfg.TLS != nil && optional.Value(a.cfg.TLS.RPC) {
		return "", nil
	}
	return gate.KeptToken(a.dataDir)
}

// tellNodes leaves the token where nodes of the same user on this machine find it, and says how others get it.
func (a *Agent) tellNodes() {
	token := a.control.joinToken
	if token == "" || a.rpc == nil {
		return
	}
	var err error
	if a.told, err = gate.Announce(a.RPCAddr(), token); err != nil {
		a.deps.Log.Warn("nodes of this machine must be given the join token, as there is no place to leave it for them", "error", err)
	}
	where := "server.join_token"
	if s := a.cfg.Server; s.JoinToken == "" {
		where = cmp.Or(s.JoinTokenFile, filepath.Join(a.dataDir, gate.TokenFile))
	}
	a.deps.Log.Info("nodes of this user on this machine join by themselves, others with the token", "token_in", where,
		"command", "drover agent -client -servers "+usable(serverAddress(a), fingerprint.Probe(a.dataDir).IP)+" -data-dir DIR -join-token TOKEN")
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

// links returns how the links of nodes are served: behind the gate if they are mutual TLS and machines are bought.
func (a *Agent) links(next http.Handler) (http.Handler, *tls.Config) {
	mutual := a.live.RPC
	if mutual == nil || !buys(a.cfg) {
		return next, mutual.Listening("h2")
	}
	return gate.Handler(a.control.gate, a.control.front.Current, next), gate.TLS(a.control.gate, mutual.Config)
}

// enroll gets this machine a certificate from the server, if its configuration names the authority that the server is
// known by: the fleet's machines come with that and a token. Errors: Unauthorized, Invalid; Unavailable when no server
// answered.
func (a *Agent) enroll(ctx context.Context) error {
	m := a.cfg.Client.Machine
	if !optional.Value(a.cfg.Client.Enabled) || a.control != nil || m == nil || m.Authority == "" || a.cfg.TLS != nil {
		return nil
	}
	e := &machine.Enrollment{
		Folder: filepath.Join(a.dataDir, "client", "tls"), Authority: m.Authority,
		DeadAfter: config.Duration(m.DeadAfter, 0), PowerOff: m.PowerOff, Clock: a.deps.Clock, Log: a.deps.Log,
	}
	a.cfg.TLS = &config.TLS{RPC: new(true), CAFile: e.CAFile(), CertFile: e.CertFile(), KeyFile: e.KeyFile()}
	if needed, err := e.Prepare(); err != nil || !needed {
		return err
	}
	who, err := agent.ReadIdentity(agent.Config{DataDir: a.dataDir}, a.deps.IDs)
	if err != nil {
		return err
	}
	list := a.cfg.Client.ServerList()
	token, err := joinTokenFor(ctx, a.cfg.Client, list[0])
	if err != nil {
		return err
	}
	next := 0
	identity := link.Identity{NodeID: who.ID, Secret: who.Secret, JoinToken: token}
	return e.Run(ctx, func(ctx context.Context, server *tls.Config, csr []byte) ([]byte, error) {
		hc := link.NewHTTPClient(server)
		defer hc.CloseIdleConnections()
		address := list[next%len(list)] // another one at each try
		next++
		return link.Enroll(ctx, hc, "https://"+address, identity, csr)
	})
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
