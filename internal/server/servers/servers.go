package servers

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drover-project/drover"
	clusternoun "github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/autopilot"
	"github.com/drover-project/drover/internal/control/cluster"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/members"
	"github.com/drover-project/drover/internal/control/raftlog"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/fleet/gate"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/peer"
	"github.com/drover-project/drover/internal/peercall"
	"github.com/drover-project/drover/internal/telemetry"
	"github.com/drover-project/drover/internal/wake"
)

// Server is a server of this region.
type Server struct {
	ID, Name, Region string
	Address          string // host:port of its rpc port
	HTTP             string // host:port of its API
	Alive, Voter     bool
}

// Config says who this server is, and how it finds others.
type Config struct {
	Self    members.Self // RPCAddr and HTTPAddr are those that others dial
	Folder  string       // of the log, and of what is kept of the cluster; "" keeps nothing
	Gossip  members.Config
	Encrypt string // the first gossip key; those that are kept in Gossip.DataDir come before it
	Join    cluster.Config
	TLS     func() *tls.Config // peer.Config's; nil is clear text
	Accept  *tls.Config        // peer.Config's
	Revoked peer.Revoked       // peer.Config's

	Handshake time.Duration // peer.Config's
	// Autopilot is how servers are kept healthy while nothing is stored; Seed stores it at the first leader.
	Autopilot clusternoun.Autopilot
	Seed      bool
	Hold      time.Duration // how long a proposal waits for a leader; default 5 s
}

// Deps are what Servers work with.
type Deps struct {
	Store  *store.Store
	Clock  clock.Clock
	IDs    id.Source
	Logger *slog.Logger
	// Samples takes what is measured under Nomad's names; nil: nobody does.
	Samples *telemetry.Samples
}

// Servers is this server among the others.
type Servers struct {
	cfg       Config
	deps      Deps
	port      *peer.Port // nil for a server that is alone
	log       *raftlog.Log
	gossip    atomic.Pointer[members.Members] // nil for a server that is alone, and before Open
	cluster   *cluster.Cluster
	autopilot *autopilot.Autopilot // nil for a server that is alone
	mux       *peercall.Mux
	client    *peercall.Client
	changed   wake.Broadcast
	unobserve func()
	since     time.Time // it runs

	keeping sync.Mutex // held while the cluster's id is written

	kept     string   // id of the cluster that this server belonged to when it was started; "" if to none
	refusals refusals // by servers of the log

	dialled struct { // what ForNodes remembers
		mu      sync.Mutex // guards what follows
		changed <-chan struct{}
		list    []exchange.Server
	}

	secret string             // that other servers of this user on this machine find, and prove to have
	told   *gate.Announcement // of the secret
}

// reads is which cluster versions this program reads.
var reads = members.Versions{Min: command.Oldest, Max: command.Newest}

// Alone returns a server that no other can reach. Of the configuration it needs Self and Autopilot.
func Alone(cfg Config, deps Deps) *Servers {
	cfg.Self.Protocol = reads
	return &Servers{cfg: cfg, deps: deps, mux: peercall.NewMux(), since: deps.Clock.Now()}
}

// Listen splits the port. From here on this server can dial others, and others that dial it wait until their connections are
// accepted. Close closes it. Errors: Invalid for the gossip keys.
func Listen(in net.Listener, cfg Config, deps Deps) (*Servers, error) {
	keys, err := members.OpenKeyring(cfg.Gossip.DataDir, cfg.Encrypt)
	if err != nil {
		return nil, err
	}
	cfg.Gossip.Keys = keys
	if cfg.Hold == 0 {
		cfg.Hold = hold
	}
	cfg.Self.Protocol = reads
	s := &Servers{cfg: cfg, deps: deps, mux: peercall.NewMux(), secret: rand.Text()}
	if s.kept, err = read(cfg.Folder, clusterFile); err != nil {
		return nil, err
	}
	s.port = peer.Split(in, peer.Config{
		Self: s.identity, TLS: cfg.TLS, Accept: cfg.Accept, Secrets: s.proofs, Clock: deps.Clock, Log: deps.Logger,
		Revoked: cfg.Revoked, Handshake: cfg.Handshake,
		Accepted: func() { deps.Samples.Count("nomad.nomad.rpc.accept_conn", 1) },
	})
	s.client = peercall.NewClient(cfg.Self.ID, s.Dial, deps.Clock)
	peercall.Handle(s.mux, procStatus, s.answerStatus)
	peercall.Handle(s.mux, procPropose, s.answerPropose)
	peercall.Handle(s.mux, procReadIndex, s.answerReadIndex)
	return s, nil
}

// proofs are what servers prove to each other in clear text: the gossip keys that they have at the time. Servers of one user on
// one machine have a secret instead, which stands beside the address of the other's gossip.
func (s *Servers) proofs(ctx context.Context, address string) []string {
	if s.cfg.Gossip.Keys != nil {
		return s.cfg.Gossip.Keys.Secrets()
	}
	if address == "" {
		return []string{s.secret}
	}
	if g := s.gossip.Load(); g != nil {
		for _, m := range g.List() {
			if m.RPCAddr == address {
				if token := gate.AnnouncedToken(ctx, m.Gossip); token != "" {
					return []string{token}
				}
			}
		}
	}
	return nil
}

// Network is how the log's servers reach each other; nil for a server that is alone.
func (s *Servers) Network() raftlog.Network {
	if s.port == nil {
		return nil
	}
	return network{s.port.Listener(peer.Raft), s}
}

type network struct {
	net.Listener
	servers *Servers
}

// Accept implements net.Listener.
func (n network) Accept() (net.Conn, error) {
	c, err := n.Listener.Accept()
	if err == nil {
		n.servers.deps.Samples.Count("nomad.nomad.rpc.raft_handoff", 1)
	}
	return c, err
}

// Dial implements raftlog.Network.
func (n network) Dial(ctx context.Context, id, address string) (net.Conn, error) {
	self := n.servers.identity()
	c, err := n.servers.port.Dial(ctx, peer.Raft, address, peer.Identity{Server: id, Region: self.Region, Cluster: self.Cluster})
	n.servers.refusals.note(id, err)
	return c, err
}

// Clustered reports whether there are other servers, or can be.
func (s *Servers) Clustered() bool { return s.port != nil }

// Nodes is where nodes are accepted.
func (s *Servers) Nodes() net.Listener { return s.port.Nodes() }

// Forwarded is where calls and requests of other servers are accepted.
func (s *Servers) Forwarded() net.Listener { return s.port.Listener(peer.Forward) }

// Mux has the procedures that other servers may call. They are registered before Run.
func (s *Servers) Mux() *peercall.Mux { return s.mux }

// Client calls other servers; nil for a server that is alone.
func (s *Servers) Client() *peercall.Client { return s.client }

// Dial opens a connection for HTTP/1.1 to the server that gossip or the log knows at the rpc address. Errors: Unavailable, also
// if another one is there; Unauthorized.
func (s *Servers) Dial(ctx context.Context, address string) (net.Conn, error) {
	if s.port == nil {
		return nil, drover.Errorf(drover.Unavailable, "this server is alone")
	}
	return s.port.Dial(ctx, peer.Forward, address, s.at(address))
}

// Open begins to gossip, over the log that was opened with Network. Errors: Unavailable if the port is taken; Invalid.
func (s *Servers) Open(ctx context.Context, log *raftlog.Log) error {
	s.log = log
	s.unobserve = log.Observe(s.changed.Send)
	if s.port == nil {
		return nil
	}
	clusterID, err := s.identify(ctx)
	if err != nil {
		return err
	}
	s.cfg.Self.Cluster = clusterID
	s.cfg.Gossip.Self = s.cfg.Self
	gossip, err := members.Open(s.cfg.Gossip, s.deps.Logger)
	if err != nil {
		return err
	}
	s.gossip.Store(gossip)
	if s.cfg.TLS == nil && s.cfg.Gossip.Keys == nil {
		if s.told, err = gate.Announce(gossip.Address(), s.secret); err != nil {
			s.deps.Logger.Warn("other servers of this machine cannot speak with this one without server.encrypt", "error", err)
		}
	}
	s.cluster = cluster.New(s.cfg.Join, cluster.Deps{
		Log: log, Gossip: gossip, Identity: identity{s}, Ask: s.ask, Progress: log.Progress,
		Autopilot: func(term context.Context) { s.autopilot.Run(term) }, Clock: s.deps.Clock, IDs: s.deps.IDs, Logger: s.deps.Logger,
		Samples: s.deps.Samples,
	})
	s.autopilot = autopilot.New(log, s.cluster.Watch(s.Autopilot))
	return nil
}

// Gossip is what is known of the members; nil for a server that is alone.
func (s *Servers) Gossip() *members.Members { return s.gossip.Load() }

// Run joins, begins and leads the cluster as it has to until ctx ends. Errors: Unavailable if all tries to join failed.
func (s *Servers) Run(ctx context.Context) error {
	gossip := s.gossip.Load()
	if gossip == nil {
		<-ctx.Done()
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	var wait sync.WaitGroup
	wait.Go(func() {
		for ctx.Err() == nil {
			changed := gossip.Changed()
			s.changed.Send()
			select {
			case <-changed:
			case <-ctx.Done():
			}
		}
	})
	if s.cfg.Seed {
		wait.Go(func() { s.log.Follow(ctx, s.seedAutopilot) })
	}
	err := s.cluster.Run(ctx)
	cancel()
	wait.Wait()
	return err
}

// Leave hands leadership over and tells the others that this server goes for good.
func (s *Servers) Leave(ctx context.Context) error {
	if s.cluster == nil {
		return nil
	}
	return s.cluster.Leave(ctx)
}

// HandOver makes another server the leader, if this one is it, within some seconds: it is about to stop.
func (s *Servers) HandOver(ctx context.Context) {
	if s.cluster != nil {
		s.cluster.HandOver(ctx)
	}
}

// Close ends gossip and closes the port. It may be called twice, and on nil.
func (s *Servers) Close() {
	if s == nil {
		return
	}
	s.told.Close()
	s.told = nil
	if s.unobserve != nil {
		s.unobserve()
		s.unobserve = nil
	}
	if g := s.gossip.Load(); g != nil {
		if err := g.Close(); err != nil {
			s.deps.Logger.Warn("stopping", "error", err)
		}
	}
	if s.client != nil {
		s.client.Close()
	}
	if s.port != nil {
		_ = s.port.Close() // it was closed before, at the latest by the log
	}
}
