package link

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/net/http2"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/link/wire"
	"github.com/drover-project/drover/internal/link/workloads"
	"github.com/drover-project/drover/internal/telemetry"
)

// chunkStream carries the bytes of a tunnel, a pipe or a relay at the side that was called.
type chunkStream = connect.BidiStream[wire.Chunk, wire.Chunk]

// ServeWorkloads opens the tunnel and serves w through it until ctx ends or the connection breaks; then the caller dials again.
// ready is called once control accepted the tunnel, with the id of its server if that said one.
func (c *Control) ServeWorkloads(ctx context.Context, w exchange.Workloads, ready func(serverID string)) error {
	return c.serve(ctx, workloadsHandler(w), ready)
}

// serve is ServeWorkloads of a handler of workloads.
func (c *Control) serve(ctx context.Context, handler http.Handler, ready func(serverID string)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := c.tunnel.CallBidiStream(ctx)
	c.joins().set(s.RequestHeader())
	s.RequestHeader().Set(silentHeader, "true")
	if err := s.Send(nil); err != nil {
		return wire.Unwrap(err)
	}
	if _, err := s.Receive(); err != nil {
		return wire.Unwrap(err)
	}
	conn := newStreamConn(s.Receive, s.Send, func() { _ = s.CloseRequest(); cancel() })
	conn.suspects = c.suspects
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })() // http2 alone does not notice while the request body is open
	if ready != nil {
		ready(s.ResponseHeader().Get(serverHeader))
	}
	if conn.await() { // the line finds out that the server is gone
		serveWorkloads(ctx, conn, conn.broken, c.tunnelled(handler), timing{})
	}
	return drover.Errorf(drover.Unavailable, "link: the tunnel to control closed")
}

// tunnelled is what control reaches through the tunnel: the workloads, and what the node's agent says of itself.
func (c *Control) tunnelled(handler http.Handler) http.Handler {
	if c.faces == nil {
		return handler
	}
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, workloads.Path) {
			handler.ServeHTTP(rw, r)
			return
		}
		c.faces.ServeHTTP(rw, r)
	})
}

// Nodes knows the workloads of the nodes whose tunnels end here.
type Nodes struct {
	mu    sync.Mutex
	self  string                 // guarded by mu, as conns
	conns map[string]*remoteNode // by the node's id
}

// NewNodes returns an empty set.
func NewNodes() *Nodes { return &Nodes{conns: map[string]*remoteNode{}} }

// Identify has nodes that open a tunnel told the id of the server where it ends.
func (n *Nodes) Identify(serverID string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.self = serverID
}

// Gauges emits drover.nodes.tunnels, the number of nodes whose tunnels end here.
func (n *Nodes) Gauges(emit telemetry.Emit) {
	n.mu.Lock()
	defer n.mu.Unlock()
	emit("drover.nodes.tunnels", float64(len(n.conns)))
}

// server is the id that nodes are told.
func (n *Nodes) server() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.self
}

// remoteNode is a node at the other end of a tunnel.
type remoteNode struct {
	*workloads.Client
	conn *streamConn
	used func() (*http2.ClientConn, error) // HTTP/2 over conn, from the first request on
}

// newRemoteNode makes one. Nothing is sent before the first request: most tunnels are hardly ever used.
func newRemoteNode(conn *streamConn) *remoteNode {
	r := &remoteNode{conn: conn}
	r.used = sync.OnceValues(func() (*http2.ClientConn, error) {
		t := &http2.Transport{AllowHTTP: true, StrictMaxConcurrentStreams: true} // HTTP2 finds out that the node is gone
		return t.NewClientConn(conn)
	})
	r.Client = workloads.NewClient(&http.Client{Transport: r})
	return r
}

// RoundTrip implements http.RoundTripper. Errors: Unavailable if the tunnel broke.
func (r *remoteNode) RoundTrip(req *http.Request) (*http.Response, error) {
	c, err := r.used()
	if err != nil {
		return nil, drover.Errorf(drover.Unavailable, "link: opening the tunnel: %w", err)
	}
	return c.RoundTrip(req)
}

// Workloads returns the node's workloads. Errors: Unavailable when it has no tunnel here.
func (n *Nodes) Workloads(nodeID string) (exchange.Workloads, error) {
	r, err := n.node(nodeID)
	if err != nil {
		return nil, err
	}
	return r.Client, nil
}

func (n *Nodes) node(nodeID string) (*remoteNode, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	r, ok := n.conns[nodeID]
	if !ok {
		return nil, drover.Errorf(drover.Unavailable, "node %s is not connected to this server", nodeID)
	}
	return r, nil
}

// Agent returns what reaches the faces of the node's agent. Errors: Unavailable when it has no tunnel here.
func (n *Nodes) Agent(nodeID string) (http.RoundTripper, error) {
	return n.node(nodeID)
}

// Suspect has all nodes whose tunnels end here look whether the server still answers them, as it does not answer this one. It does not
// wait for them.
func (n *Nodes) Suspect(serverID string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, r := range n.conns {
		go func() { _ = r.conn.say(&wire.Chunk{Suspect: serverID}) }() // ends when it is said, or when the tunnel breaks
	}
}

// serve makes a tunnel usable until it breaks. A newer tunnel of the same node replaces an older one. Nodes of before close a tunnel
// in which nothing is said for some seconds: they are not silent.
func (n *Nodes) serve(ctx context.Context, nodeID string, s *chunkStream, silent bool) error {
	gone := make(chan struct{})
	conn := newStreamConn(s.Receive, s.Send, sync.OnceFunc(func() { close(gone) }))
	node := newRemoteNode(conn)
	if !silent {
		if _, err := node.used(); err != nil {
			return drover.Errorf(drover.Unavailable, "link: opening the tunnel: %w", err)
		}
	}
	n.mu.Lock()
	old := n.conns[nodeID]
	n.conns[nodeID] = node
	n.mu.Unlock()
	if old != nil {
		_ = old.conn.Close()
	}
	select {
	case <-ctx.Done():
	case <-gone:
	}
	_ = conn.Close()
	n.mu.Lock()
	if n.conns[nodeID] == node {
		delete(n.conns, nodeID)
	}
	n.mu.Unlock()
	return nil
}

// streamConn is a net.Conn over a stream of chunks. Deadlines are not needed by http2 beyond its pings.
type streamConn struct {
	receive func() (*wire.Chunk, error)
	send    func(*wire.Chunk) error
	onClose func()
	rest    []byte     // owned by the reader
	sendMu  sync.Mutex // one Send at a time
	closed  bool       // guarded by sendMu
	once    sync.Once

	suspects func(serverID string) // is told of servers; nil: nobody is
}

func newStreamConn(receive func() (*wire.Chunk, error), send func(*wire.Chunk) error, onClose func()) *streamConn {
	return &streamConn{receive: receive, send: send, onClose: onClose}
}

// await waits until there is something to read. It reports false if the stream ended.
func (c *streamConn) await() bool {
	for len(c.rest) == 0 {
		m, err := c.receive()
		if err != nil {
			_ = c.Close()
			return false
		}
		if c.rest = m.Data; m.Suspect != "" && c.suspects != nil {
			c.suspects(m.Suspect)
		}
	}
	return true
}

// Read returns the next bytes.
func (c *streamConn) Read(p []byte) (int, error) {
	if !c.await() {
		return 0, io.EOF
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// Write sends p as one chunk.
func (c *streamConn) Write(p []byte) (int, error) {
	if err := c.say(&wire.Chunk{Data: p}); err != nil {
		return 0, err
	}
	return len(p), nil
}

// say sends a chunk.
func (c *streamConn) say(m *wire.Chunk) error {
	c.sendMu.Lock()
	if c.closed {
		c.sendMu.Unlock()
		return net.ErrClosed
	}
	err := c.send(m)
	c.sendMu.Unlock()
	if err != nil {
		_ = c.Close()
	}
	return err
}

// Close ends the connection. Once it has returned nothing is sent any more, so that a handler may return.
func (c *streamConn) Close() error {
	c.once.Do(c.onClose)
	c.sendMu.Lock()
	c.closed = true
	c.sendMu.Unlock()
	return nil
}

// broken reports whether the connection has ended. It knows that before those who use the connection are told.
func (c *streamConn) broken() bool {
	c.sendMu.Lock()
	defer c.sendMu.Unlock()
	return c.closed
}

type tunnelAddr struct{}

func (tunnelAddr) Network() string { return "tunnel" }
func (tunnelAddr) String() string  { return "tunnel" }

func (*streamConn) LocalAddr() net.Addr              { return tunnelAddr{} }
func (*streamConn) RemoteAddr() net.Addr             { return tunnelAddr{} }
func (*streamConn) SetDeadline(time.Time) error      { return nil }
func (*streamConn) SetReadDeadline(time.Time) error  { return nil }
func (*streamConn) SetWriteDeadline(time.Time) error { return nil }
