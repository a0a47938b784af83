package server

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/control/members"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/relay"
	"github.com/drover-project/drover/internal/link"
	"github.com/drover-project/drover/internal/peercall"
	"github.com/drover-project/drover/internal/server/servers"
)

// procReadIndex asks the leader from which index on a state is new enough for a consistent read.
const procReadIndex = "Log.ReadIndex"

// openRelay makes the relay of a server.
func (a *Agent) openRelay() *relay.Relay {
	c := a.control
	peercall.Handle(c.servers.Mux(), procReadIndex, func(ctx context.Context, _ string, _ struct{}) (uint64, error) {
		return c.log.ReadIndex(ctx)
	})
	return relay.New(relay.Config{Hold: config.Duration(a.cfg.Server.RPCHold, 0), Authority: a.cfg.Authority()}, relay.Deps{
		Servers: &knownServers{Servers: c.servers}, Owner: a.owner, Ready: c.log.Ready, Linearize: c.linearize,
		Abroad: func(region string) { a.samples.Count("nomad.nomad.rpc.cross_region."+region, 1) }, Node: a.info().LocalNode(),
		Clock: a.deps.Clock, Log: a.deps.Log.With("part", "relay"),
	})
}

// openNodeRelay makes the relay of an agent without a server, which sends requests to a server.
func (a *Agent) openNodeRelay() *relay.Relay {
	return relay.NewNode(relay.Config{}, a.node.agent.NodeID(), a.node.remote.Relay, a.deps.Clock, a.deps.Log.With("part", "relay"))
}

// nodeKey is where a request's context has the id of the node that sent it on.
type nodeKey struct{}

// serveRelays serves what nodes send on until the returned function is called.
func (a *Agent) serveRelays(ctx context.Context, relays *link.Relays) (end func(), err error) {
	faces, err := a.handler()
	if err != nil {
		return nil, err
	}
	srv := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			node, _ := r.Context().Value(nodeKey{}).(string)
			relay.FromNode(faces, node, func(r *http.Request) error { return a.cfg.RefuseRelayed(r.RemoteAddr) }).ServeHTTP(w, r)
		}),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, nodeKey{}, link.RelayingNode(c))
		},
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: 10 * time.Second,
	}
	var served sync.WaitGroup
	served.Go(func() { _ = srv.Serve(relays) }) // ends with end
	return func() {
		_ = srv.Close()
		served.Wait()
	}, nil
}

// owner says which server answers for a node, allocation, runner or execution: this one if it reaches the node, else another
// one that does. "" is the leader.
func (a *Agent) owner(ctx context.Context, place httpapi.Place, key string) (string, error) {
	if place == httpapi.AtAllocation || place == httpapi.AtNode {
		a.current(ctx)
	}
	if place == httpapi.AtAllocation {
		alloc := a.control.store.Snapshot().Allocation(key)
		if alloc == nil {
			return "", nil
		}
		place, key = httpapi.AtNode, alloc.NodeID
	}
	if place == httpapi.AtNode {
		return a.control.front.Holder(ctx, key), nil
	}
	if a.exec.cluster != nil { // at the leader only
		return "", nil
	}
	return a.exec.directory.Owner(ctx, place, key)
}

// current waits until this server knows of an allocation what the leader knows: whoever asks about it may have seen that.
// Without a leader, what is known here has to do.
func (a *Agent) current(ctx context.Context) {
	ctx, cancel := a.deps.Clock.WithTimeout(ctx, ownerWait)
	defer cancel()
	if err := a.control.front.Current(ctx); err != nil {
		a.deps.Log.Debug("answering from state that may be old", "error", err)
	}
}

// ownerWait bounds that.
const ownerWait = 2 * time.Second

// linearize waits until this server's state has all that was acknowledged anywhere before the call.
func (c *control) linearize(ctx context.Context) error {
	if c.servers.Leads() {
		_, err := c.log.ReadIndex(ctx)
		return err
	}
	leader, ok := c.servers.Leader()
	for !ok {
		changed := c.servers.Changed()
		if leader, ok = c.servers.Leader(); ok {
			break
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if leader.ID == c.servers.Self().ID {
		_, err := c.log.ReadIndex(ctx)
		return err
	}
	index, err := peercall.Call[uint64](ctx, c.servers.Client(), leader.Address, procReadIndex, struct{}{})
	if err != nil {
		return err
	}
	return c.reach(ctx, index)
}

// reach waits until this server's state has the index. Errors: ctx's.
func (c *control) reach(ctx context.Context, index uint64) error {
	for {
		changed := c.store.WatchAny()
		if c.store.Snapshot().Index() >= index {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// knownServers are the servers of all regions, as the relay finds them. They are remembered until something changes, since each
// request asks several times.
type knownServers struct {
	*servers.Servers

	mu      sync.Mutex // guards what follows
	changed <-chan struct{}
	self    relay.Server
	list    []relay.Server
}

// known returns what is remembered, or makes it anew.
func (k *knownServers) known() (self relay.Server, list []relay.Server) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.changed != nil {
		select {
		case <-k.changed:
		default:
			return k.self, k.list
		}
	}
	k.changed = k.Servers.Changed() // before the reading, so that no change falls between
	k.self, k.list = relay.Server(k.Servers.Self()), nil
	votes := map[string]bool{}
	for _, s := range k.Servers.List() {
		votes[s.ID] = s.Voter
	}
	for _, m := range k.Members() {
		k.list = append(k.list, relay.Server{
			ID: m.ID, Name: m.Name, Region: m.Region, Address: m.RPCAddr, HTTP: m.HTTPAddr,
			Alive: m.Status == members.Alive, Voter: votes[m.ID],
		})
	}
	return k.self, k.list
}

// Self implements relay.Servers.
func (k *knownServers) Self() relay.Server { self, _ := k.known(); return self }

// List implements relay.Servers.
func (k *knownServers) List() []relay.Server { _, list := k.known(); return list }

// ByID implements relay.Servers.
func (k *knownServers) ByID(id string) (relay.Server, bool) {
	_, list := k.known()
	for _, s := range list {
		if s.ID == id {
			return s, true
		}
	}
	return relay.Server{}, false
}

// Leader implements relay.Servers.
func (k *knownServers) Leader() (relay.Server, bool) {
	if k.Leads() {
		return k.Self(), true
	}
	id, address := k.Log().Leader()
	if id == "" || id == k.Self().ID { // it does not lead any more
		return relay.Server{}, false
	}
	if s, ok := k.ByID(id); ok {
		return s, true
	}
	return relay.Server{ID: id, Name: id, Region: k.Self().Region, Address: address, Alive: true, Voter: true}, true // gossip is late
}

// Dial implements relay.Servers.
func (k *knownServers) Dial(ctx context.Context, address string) (net.Conn, error) {
	return k.Servers.Dial(ctx, address)
}
