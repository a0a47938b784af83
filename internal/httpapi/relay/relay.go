package relay

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/httpapi"
)

// Config of a Relay. Zero values are the defaults.
type Config struct {
	Hold      time.Duration // how long a request waits for a leader; for who keeps a runner twice as long; default 5 s
	Idle      int           // connections that are kept to each server; default 64
	Authority string        // the authoritative region; "" = each region is its own
}

// Deps of a Relay.
type Deps struct {
	Servers Servers
	// Owner names the server, by its id, that answers for the key; "" is the leader, which knows best. Errors are answers, but for
	// Unavailable of a runner or an execution: that cannot be said yet, and it is asked again for a while.
	Owner func(ctx context.Context, place httpapi.Place, key string) (id string, err error)
	// Ready returns once this server, which leads, has all that was acknowledged before it did; nil is at once.
	Ready func(ctx context.Context) error
	// Linearize returns once this server has all that was acknowledged anywhere before it was called, as the leader confirmed
	// with a majority. Errors: NotLeader, Unavailable.
	Linearize func(ctx context.Context) error
	// Abroad is told of each request that goes to another region; nil: nobody is.
	Abroad func(region string)
	// Node is the id of the node in this process, which requests that name none mean; "" if there is none.
	Node  string
	Clock clock.Clock
	Log   *slog.Logger
}

// Relay sends requests to where they are answered. It is an httpapi.Relay.
type Relay struct {
	cfg       Config
	servers   Servers
	owner     func(ctx context.Context, place httpapi.Place, key string) (string, error)
	ready     func(ctx context.Context) error
	linearize func(ctx context.Context) error
	told      func(region string)
	local     string // the node in this process
	clock     clock.Clock
	log       *slog.Logger
	transport *http.Transport
	turn      atomic.Uint64 // of the next server among equals
	node      bool          // this agent is no server
}

// New returns a relay. Close it.
func New(cfg Config, d Deps) *Relay {
	cfg.Hold, cfg.Idle = cmp.Or(cfg.Hold, 5*time.Second), cmp.Or(cfg.Idle, 64)
	l := &Relay{
		cfg: cfg, servers: d.Servers, owner: d.Owner, ready: d.Ready, linearize: d.Linearize, told: d.Abroad,
		local: d.Node, clock: d.Clock, log: d.Log,
	}
	l.transport = &http.Transport{
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			ctx, cancel := l.clock.WithTimeout(ctx, l.cfg.Hold)
			defer cancel()
			c, err := l.servers.Dial(ctx, address)
			if err != nil {
				return nil, &dialError{err}
			}
			return c, nil
		},
		DisableCompression: true, MaxIdleConnsPerHost: cfg.Idle, IdleConnTimeout: 90 * time.Second,
		MaxResponseHeaderBytes: 1 << 20, ReadBufferSize: 16 << 10, WriteBufferSize: 16 << 10,
	}
	return l
}

// Close closes the connections that wait for requests.
func (l *Relay) Close() { l.transport.CloseIdleConnections() }

// Elsewhere implements httpapi.Relay.
func (l *Relay) Elsewhere(w http.ResponseWriter, r *http.Request, at httpapi.Where) (bool, error) {
	if at.Place == httpapi.AtHere {
		return false, nil
	}
	a := &attempt{Relay: l, in: r, place: at.Place}
	if at.Key != nil && l.decides(at.Place) {
		var err error
		if a.key, err = at.Key(r); err != nil {
			return false, err
		}
	}
	if a.region = httpapi.Region(r); a.region == "" && at.Region != nil && l.abroad() {
		var err error
		if a.region, err = at.Region(r); err != nil {
			return false, err
		}
	}
	hop, relayed := httpapi.HopOf(r.Context())
	a.last = relayed && hop.Way == httpapi.FromServer
	hold, cancel := l.clock.WithTimeout(r.Context(), l.hold(at.Place))
	defer cancel()
	a.hold = hold
	t, err := a.decide(hold)
	switch {
	case err != nil:
		if a.last && kept(at.Place) && drover.CodeOf(err) == drover.Unavailable {
			w.Header().Set(httpapi.RefusedHeader, "true")
		}
		return false, err
	case t.here:
		return false, nil
	case a.last || relayed && t.way == httpapi.FromRegion && hop.Way == httpapi.FromRegion: // far enough
		w.Header().Set(httpapi.RefusedHeader, "true")
		return false, errNoLeader()
	}
	a.to = t
	return a.send(r.Context(), w)
}

// kept reports whether the place is a server that keeps something. When that server is gone, another takes it over.
func kept(place httpapi.Place) bool { return place == httpapi.AtRunner || place == httpapi.AtExecution }

// hold is how long a request waits for who answers it. Taking over from a server takes longer than electing a leader: nobody
// can be sure that it is gone before its leases have ended.
func (l *Relay) hold(place httpapi.Place) time.Duration {
	if kept(place) {
		return 2 * l.cfg.Hold
	}
	return l.cfg.Hold
}

// decides reports whether this agent looks at the place's key to find who answers. An agent without a server leaves that to a
// server, unless the request is about the agent itself.
func (l *Relay) decides(place httpapi.Place) bool {
	if l.node {
		return place == httpapi.AtMember || place == httpapi.AtNode
	}
	return place != httpapi.AtClaim || !l.alone()
}

// decide says who answers. It may wait until ctx ends.
func (a *attempt) decide(ctx context.Context) (target, error) {
	region := a.region
	if a.place == httpapi.AtAuthority && a.cfg.Authority != "" {
		region = a.cfg.Authority
	}
	if !a.node && region != "" && region != a.servers.Self().Region {
		to, err := a.inRegion(region)
		if err == nil && a.told != nil {
			a.told(region)
		}
		return to, err
	}
	switch a.place {
	case httpapi.AtHere, httpapi.AtAny:
		if !a.node {
			return target{here: true}, nil
		}
	case httpapi.AtReads:
		return a.reads(ctx, a.in)
	case httpapi.AtReadsAlone:
		if a.in.Method == http.MethodGet || a.in.Method == http.MethodHead {
			return a.reads(ctx, a.in)
		}
	case httpapi.AtMember:
		return a.byMember(ctx)
	case httpapi.AtNode:
		if a.key == "" {
			return target{here: true}, nil
		}
		return a.owned(ctx, a.place, a.key)
	case httpapi.AtRunner, httpapi.AtExecution, httpapi.AtClaim, httpapi.AtAllocation:
		return a.owned(ctx, a.place, a.key)
	default:
	}
	return a.leader(ctx)
}

// byMember says who answers of itself: the server that is named, or else one that reaches the node that is named.
func (a *attempt) byMember(ctx context.Context) (target, error) {
	node := a.in.URL.Query().Get("node_id")
	switch {
	case a.node && node != "" && node != a.servers.Self().ID:
		return a.leader(ctx) // which reaches that node
	case a.key != "":
		return a.member(ctx, a.key)
	case a.node || node == "" || node == a.local:
		return target{here: true}, nil
	}
	return a.owned(ctx, httpapi.AtNode, node)
}

// abroad reports whether servers of other regions are known. Without any, a body is not read to find its region: the handler
// refuses a region that is not its own.
func (l *Relay) abroad() bool {
	if l.node { // its server knows
		return false
	}
	self := l.servers.Self()
	return slices.ContainsFunc(l.servers.List(), func(s Server) bool { return s.Region != self.Region })
}

// alone reports whether there is no other server of the region.
func (l *Relay) alone() bool {
	self := l.servers.Self()
	for _, s := range l.servers.List() {
		if s.ID != self.ID && s.Region == self.Region {
			return false
		}
	}
	return true
}

// owned is who answers for the key, or else the leader. A server that gossip does not hear of cannot answer, and another takes
// over what it keeps. A client's request waits for that; one that another server sent on is refused.
func (a *attempt) owned(ctx context.Context, place httpapi.Place, key string) (target, error) {
	if a.owner == nil {
		return a.leader(ctx)
	}
	for {
		changed := a.servers.Changed()
		id, err := a.owner(ctx, place, key)
		switch {
		case err != nil && (!kept(place) || drover.CodeOf(err) != drover.Unavailable):
			return target{}, err
		case err != nil:
		case id == a.servers.Self().ID:
			return target{here: true}, nil
		default:
			if s, ok := a.servers.ByID(id); ok && s.Alive {
				return a.Relay.to(s), nil
			}
			if id == "" || !kept(place) {
				return a.leader(ctx)
			}
			err = drover.Errorf(drover.Unavailable, "the server that keeps it is gone, and no other has taken over from it yet")
		}
		if a.last || !a.pause(ctx, changed) {
			return target{}, err
		}
	}
}

// reads is who answers a read with the consistency that the query asks for. Errors: Invalid; those of Linearize.
func (l *Relay) reads(ctx context.Context, r *http.Request) (target, error) {
	stale, err := flag(r, "stale")
	if err != nil {
		return target{}, err
	}
	consistent, err := flag(r, "consistent")
	switch {
	case err != nil:
		return target{}, err
	case stale && consistent:
		return target{}, drover.Errorf(drover.Invalid, "parameters \"stale\" and \"consistent\" exclude each other")
	case stale && !l.node: // a server answers a node's, from its own state
		return target{here: true}, nil
	case consistent && l.linearize != nil:
		if err := l.linearize(ctx); err != nil {
			if ctx.Err() != nil || drover.CodeOf(err) == drover.Unavailable {
				err = errNoLeader()
			}
			return target{}, err
		}
		return target{here: true}, nil
	}
	return l.leader(ctx)
}

// flag reads a parameter that is true if it is named without a value. Errors: Invalid.
func flag(r *http.Request, name string) (bool, error) {
	if r.URL.RawQuery == "" {
		return false, nil
	}
	values := r.URL.Query()[name]
	if len(values) == 0 {
		return false, nil
	}
	if values[0] == "" {
		return true, nil
	}
	b, err := strconv.ParseBool(values[0])
	if err != nil {
		return false, drover.Errorf(drover.Invalid, "Expect `true` or `false` for `%s` query string parameter, got %s", name, values[0])
	}
	return b, nil
}

// buffers are what bodies are copied through.
type buffers struct{}

var pieces = sync.Pool{New: func() any { return new([32 << 10]byte) }}

// Get implements httputil.BufferPool.
func (buffers) Get() []byte { return pieces.Get().(*[32 << 10]byte)[:] }

// Put implements httputil.BufferPool.
func (buffers) Put(b []byte) { pieces.Put((*[32 << 10]byte)(b)) }
