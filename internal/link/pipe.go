package link

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/net/http2"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/link/wire"
	"github.com/drover-project/drover/internal/link/workloads"
)

// Where a server reaches a node through another server, a pipe leads through that server's tunnel. Over the pipe, server and
// node speak as over a tunnel. Each stream has its own flow control, and a broken pipe is told from a stream that a user ended.

// procPipe opens a pipe, at the node.
const procPipe = workloads.Path + "Pipe"

// PipePath is where other servers ask a server with tunnels for a pipe; the node's id follows.
const PipePath = "/drover/node/"

// pipeProtocol is what a connection is upgraded to.
const pipeProtocol = "drover-pipe"

// workloadsHandler serves a node's workloads to control, over any number of connections (serveWorkloads). It is made when control
// asks for the first time: it is larger than all else that a node keeps of a connection.
func workloadsHandler(w exchange.Workloads) http.Handler {
	made := sync.OnceValue(func() http.Handler {
		mux := workloads.Handler(w, broken)
		mux.Handle(procPipe, pipeHandler(mux))
		return mux
	})
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { made().ServeHTTP(rw, r) })
}

// pipeHandler serves the workloads over each pipe that comes.
func pipeHandler(handler http.Handler) http.Handler {
	return connect.NewBidiStreamHandler(procPipe, func(ctx context.Context, s *chunkStream) error {
		if err := s.Send(&wire.Chunk{}); err != nil { // says: accepted
			return err
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		conn := newStreamConn(s.Receive, s.Send, cancel)
		defer func() { _ = conn.Close() }()
		defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
		serveWorkloads(ctx, conn, conn.broken, handler, lasting)
		return nil
	}, wire.HandlerOptions)
}

// serveWorkloads serves control over a connection until that breaks, or the peer does not answer pings. gone reports that it broke,
// before what goes over it is told.
func serveWorkloads(ctx context.Context, conn net.Conn, gone func() bool, handler http.Handler, at timing) {
	server := &http2.Server{IdleTimeout: 0, ReadIdleTimeout: at.idle, PingTimeout: at.ping, MaxConcurrentStreams: 100_000}
	base := context.WithValue(context.WithoutCancel(ctx), goneKey{}, gone) // what is served ends with the connection, and finds it broken
	server.ServeConn(conn, &http2.ServeConnOpts{Context: base, Handler: handler})
}

// goneKey is where the context of what is served has serveWorkloads' gone.
type goneKey struct{}

// broken reports whether the connection has ended over which this was asked for.
func broken(ctx context.Context) bool {
	gone, _ := ctx.Value(goneKey{}).(func() bool)
	return gone != nil && gone()
}

// Pipes serves PipePath to other servers. local returns the workloads of a node of this process, or nil.
func (n *Nodes) Pipes(local func(nodeID string) exchange.Workloads) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, err := strings.TrimPrefix(r.URL.Path, PipePath), error(nil)
		if own := local(id); own != nil {
			err = pipeHere(w, r, own)
		} else {
			err = n.pipe(w, r, id)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
}

// taken takes over the connection of a request, and says that it is a pipe from now on.
func taken(w http.ResponseWriter) (net.Conn, error) {
	c, rest, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, drover.Errorf(drover.Unavailable, "link: %w", err)
	}
	// A peer that is gone is found by who reads.
	_, _ = rest.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + pipeProtocol + "\r\n\r\n")
	_ = rest.Flush()
	return &buffered{Conn: c, r: rest.Reader}, nil
}

// pipeHere serves the workloads of this process until the pipe ends.
func pipeHere(w http.ResponseWriter, r *http.Request, own exchange.Workloads) error {
	c, err := taken(w)
	if err != nil {
		return err
	}
	conn := &watched{Conn: c}
	serveWorkloads(r.Context(), conn, conn.broke.Load, workloadsHandler(own), lasting)
	return nil
}

// watched is a connection that remembers that it broke, before those who use it are told.
type watched struct {
	net.Conn
	broke atomic.Bool
}

// Read implements net.Conn.
func (w *watched) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if err != nil {
		w.broke.Store(true)
	}
	return n, err
}

// pipe leads a pipe to a node, until one side ends it. Errors: Unavailable before it is there.
func (n *Nodes) pipe(w http.ResponseWriter, r *http.Request, nodeID string) error {
	node, err := n.node(nodeID)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	defer cancel()
	s := connect.NewClient[wire.Chunk, wire.Chunk](node.HTTP, workloads.Base+procPipe, wire.ClientOptions).CallBidiStream(ctx)
	if err := s.Send(nil); err != nil {
		return wire.Unwrap(err)
	}
	if _, err := s.Receive(); err != nil {
		return wire.Unwrap(err)
	}
	far := newStreamConn(s.Receive, s.Send, func() { _ = s.CloseRequest(); cancel() })
	defer func() { _ = far.Close() }()
	near, err := taken(w)
	if err != nil {
		return err
	}
	var both sync.WaitGroup
	both.Go(func() { _, _ = io.Copy(far, near); _ = far.Close() }) // these end when either side does
	both.Go(func() { _, _ = io.Copy(near, far); _ = near.Close() })
	both.Wait()
	return nil
}

// Through returns the workloads of a node that another server reaches. It opens a pipe when it is used, and another one when that
// broke. dial connects with a server that has a tunnel to the node. Close closes it.
func Through(nodeID string, dial func(ctx context.Context) (net.Conn, error)) *Piped {
	p := &Piped{nodeID: nodeID, dial: dial, turn: make(chan struct{}, 1)}
	p.Client = workloads.NewClient(&http.Client{Transport: p})
	return p
}

// Piped is exchange.Workloads through another server.
type Piped struct {
	*workloads.Client
	nodeID string
	dial   func(ctx context.Context) (net.Conn, error)
	turn   chan struct{} // holds one element while one opens a pipe

	mu   sync.Mutex // guards what follows
	open *http2.ClientConn
	raw  net.Conn // that of open
}

// pipeWithin is how long it may take until a pipe is there. A server that accepts connections and stands still, or is about to end,
// answers nothing: who waits for it would not be served by the next server either.
const pipeWithin = 5 * time.Second

// RoundTrip implements http.RoundTripper.
func (p *Piped) RoundTrip(r *http.Request) (*http.Response, error) {
	conn, err := p.connected(r.Context())
	if err != nil {
		return nil, err
	}
	return conn.RoundTrip(r)
}

// Close breaks the pipe. The connection goes first: over one that lives, what is under way would be cancelled, which a node takes for the
// word that receipts are stored.
func (p *Piped) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open != nil {
		_ = p.raw.Close()
		_ = p.open.Close()
	}
}

// usable returns the pipe, if it is there.
func (p *Piped) usable() *http2.ClientConn {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open != nil && p.open.CanTakeNewRequest() {
		return p.open
	}
	return nil
}

// connected returns the pipe, which it opens if there is none; one does, and the others wait. Errors: Unavailable; ctx's.
func (p *Piped) connected(ctx context.Context) (*http2.ClientConn, error) {
	if open := p.usable(); open != nil {
		return open, nil
	}
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if open := p.usable(); open != nil {
		return open, nil
	}
	limit, cancel := context.WithTimeout(ctx, pipeWithin)
	defer cancel()
	raw, open, err := p.opened(limit)
	if err != nil && limit.Err() != nil && ctx.Err() == nil {
		err = drover.Errorf(drover.Unavailable, "link: no server led to node %s within %v: %w", p.nodeID, pipeWithin, err)
	}
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.raw, p.open = raw, open
	return open, nil
}

// opened opens a pipe. Errors: Unavailable; ctx's.
func (p *Piped) opened(ctx context.Context) (net.Conn, *http2.ClientConn, error) {
	c, err := p.dial(ctx)
	if err != nil {
		return nil, nil, err
	}
	unwatch := context.AfterFunc(ctx, func() { _ = c.Close() })
	piped, err := upgraded(c, p.nodeID)
	if !unwatch() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = c.Close()
		return nil, nil, err
	}
	t := &http2.Transport{
		AllowHTTP: true, ReadIdleTimeout: lasting.idle, PingTimeout: lasting.ping, IdleConnTimeout: time.Minute,
		StrictMaxConcurrentStreams: true,
	}
	open, err := t.NewClientConn(piped)
	if err != nil {
		_ = c.Close()
		return nil, nil, drover.Errorf(drover.Unavailable, "link: opening a pipe: %w", err)
	}
	return c, open, nil
}

// upgraded asks for a pipe over the connection.
func upgraded(c net.Conn, nodeID string) (net.Conn, error) {
	head := "GET " + PipePath + nodeID + " HTTP/1.1\r\nHost: node\r\nConnection: Upgrade\r\nUpgrade: " + pipeProtocol + "\r\n\r\n"
	if _, err := io.WriteString(c, head); err != nil {
		return nil, drover.Errorf(drover.Unavailable, "link: asking for a pipe: %w", err)
	}
	r := bufio.NewReader(c)
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		return nil, drover.Errorf(drover.Unavailable, "link: asking for a pipe: %w", err)
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		_ = resp.Body.Close()
		return nil, drover.Errorf(drover.Unavailable, "node %s is not reached through the other server: %s", nodeID, resp.Status)
	}
	return &buffered{Conn: c, r: r}, nil
}

// buffered is a connection of which the beginning was read.
type buffered struct {
	net.Conn
	r *bufio.Reader
}

// Read implements net.Conn.
func (b *buffered) Read(p []byte) (int, error) { return b.r.Read(p) }
