package revoked

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/telemetry"
)

// Deps are what a Guard works with.
type Deps struct {
	Find    func(id string) *cluster.Revocation // in this server's state; nil if it has none
	Changed func() <-chan struct{}              // closed when revocations change
	// Refused is told of each handshake that is refused and each connection that is closed; may be nil.
	Refused func(from net.Addr, r *cluster.Revocation)
	Clock   clock.Clock
	Log     *slog.Logger
}

// Guard knows the open connections.
type Guard struct {
	deps Deps
	told telemetry.Seldom

	mu   sync.Mutex         // guards what follows
	open map[*conn]struct{} // that are to be closed when who is there is revoked
}

// New returns a guard of no connections.
func New(deps Deps) *Guard { return &Guard{deps: deps, open: map[*conn]struct{}{}} }

// conn is a connection, below TLS.
type conn struct {
	net.Conn
	guard *Guard
	leaf  atomic.Pointer[x509.Certificate] // that was shown; nil = none yet
	node  atomic.Pointer[string]           // that calls over it say to be of; nil = none yet
	dead  atomic.Bool                      // a Guard closed it
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.guard.mu.Lock()
	delete(c.guard.open, c)
	c.guard.mu.Unlock()
	return c.Conn.Close()
}

// Wrap has the guard know a connection until it is closed.
func (g *Guard) Wrap(raw net.Conn) net.Conn {
	c := &conn{Conn: raw, guard: g}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open[c] = struct{}{}
	return c
}

// Listen has the guard know all connections of a listener.
func (g *Guard) Listen(ln net.Listener) net.Listener { return &listener{ln, g} }

type listener struct {
	net.Listener
	guard *Guard
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.guard.Wrap(c), nil
}

// Config returns a configuration for connections of Listen, in whose handshakes certificates that are revoked are refused.
func (g *Guard) Config(cfg *tls.Config) *tls.Config {
	if cfg == nil {
		return nil
	}
	out, choose := cfg.Clone(), cfg.GetConfigForClient
	out.GetConfigForClient = func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		chosen := cfg
		if choose != nil {
			other, err := choose(h)
			if err != nil {
				return nil, err
			}
			if other != nil {
				chosen = other
			}
		}
		chosen = chosen.Clone()
		chosen.GetConfigForClient = nil
		chosen.VerifyConnection = func(state tls.ConnectionState) error { return g.Shown(h.Conn, state) }
		return chosen, nil
	}
	return out
}

// Shown notes what the other end of a connection shows, which is one of Wrap or Listen. Errors: Unauthorized if that is revoked.
func (g *Guard) Shown(raw net.Conn, state tls.ConnectionState) error {
	if len(state.PeerCertificates) == 0 {
		return nil
	}
	leaf := state.PeerCertificates[0]
	if c, ok := raw.(*conn); ok {
		c.leaf.Store(leaf) // first: either Run sees it, or what follows sees what Run was told of
	}
	if r := g.against(leaf); r != nil {
		g.tell(raw, "a revoked certificate was shown", r)
		return r.Refusal()
	}
	return nil
}

// against is the revocation of the certificate; nil if there is none.
func (g *Guard) against(leaf *x509.Certificate) *cluster.Revocation {
	for _, id := range cluster.RevokedBy(leaf) {
		if r := g.deps.Find(id); r != nil {
			return r
		}
	}
	return nil
}

func (g *Guard) tell(c net.Conn, msg string, r *cluster.Revocation) {
	if g.deps.Refused != nil {
		g.deps.Refused(c.RemoteAddr(), r)
	}
	g.told.Warn(g.deps.Log, g.deps.Clock.Now(), msg, "from", c.RemoteAddr(), "revocation", r.ID, "subject", r.Subject, "reason", r.Reason)
}

// connKey is the key of the connection in the contexts of its requests.
type connKey struct{}

// ConnContext is http.Server's, of connections of Listen.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	for {
		switch at := c.(type) {
		case *conn:
			return context.WithValue(ctx, connKey{}, at)
		case interface{ NetConn() net.Conn }:
			c = at.NetConn()
		default:
			return ctx
		}
	}
}

// Handler notes of which node the calls of a connection say to be, so that it is closed when that node is revoked.
func (g *Guard) Handler(nodeOf func(*http.Request) string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(connKey{}).(*conn); ok && c.node.Load() == nil {
			if id := nodeOf(r); id != "" {
				c.node.Store(&id)
			}
		}
		next.ServeHTTP(w, r)
	})
}

// Run closes connections of those that are revoked, until ctx ends.
func (g *Guard) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		changed := g.deps.Changed()
		g.closeRevoked()
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	return nil
}

func (g *Guard) closeRevoked() {
	g.mu.Lock()
	list := make([]*conn, 0, len(g.open))
	for c := range g.open {
		list = append(list, c)
	}
	g.mu.Unlock()
	for _, c := range list {
		if r := g.revokes(c); r != nil && c.dead.CompareAndSwap(false, true) {
			g.tell(c, "closing the connection of what was revoked", r)
			_ = c.Close()
		}
	}
}

// revokes is the revocation because of which the connection is closed; nil if there is none.
func (g *Guard) revokes(c *conn) *cluster.Revocation {
	if leaf := c.leaf.Load(); leaf != nil {
		if r := g.against(leaf); r != nil {
			return r
		}
	}
	if node := c.node.Load(); node != nil {
		return g.deps.Find(cluster.RevokedNode(*node))
	}
	return nil
}
