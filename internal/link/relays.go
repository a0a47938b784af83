package link

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"connectrpc.com/connect"
	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/link/wire"
)

// procRelay is a connection of HTTP/1.1 from a node to a server, over which the node sends on requests of its callers.
const procRelay = controlPath + "Relay"

// relayTiming is that of a connection over which requests are sent on. It has one stream.
var relayTiming = timing{idle: 5 * time.Second, ping: 5 * time.Second, dial: 1500 * time.Millisecond, unused: time.Second}

// relayTry is how long a server is given to accept such a connection, if there is another one.
const relayTry = 2 * time.Second

// Relay opens a connection over which the node sends on requests of its callers, as HTTP/1.1. It goes to the main server, or
// else to another one. ctx bounds the opening only. The connection has a transport of its own: a caller who reads slowly must
// not hold up the node's heartbeats.
func (d *Dialed) Relay(ctx context.Context) (conn net.Conn, err error) {
	order := d.relayOrder()
	for _, s := range order {
		try, cancel := ctx, context.CancelFunc(func() {})
		if len(order) > 1 {
			try, cancel = d.cfg.Clock.WithTimeout(ctx, relayTry)
		}
		conn, err = d.relayTo(try, s)
		cancel()
		if err == nil || ctx.Err() != nil || !elsewhere(err) {
			break
		}
	}
	return conn, err
}

// relayOrder is the servers as they are tried: the main one, those with a tunnel, the others.
func (d *Dialed) relayOrder() []*server {
	main, _, _ := d.mainServer()
	d.mu.Lock()
	defer d.mu.Unlock()
	rank := func(s *server) int {
		switch {
		case s == main:
			return 0
		case s.stands && s.left.IsZero():
			return 1
		}
		return 2
	}
	out := slices.Clone(d.list)
	slices.SortStableFunc(out, func(a, b *server) int { return cmp.Compare(rank(a), rank(b)) })
	return out
}

func (d *Dialed) relayTo(ctx context.Context, to *server) (net.Conn, error) {
	hc := newHTTPClient(d.cfg.TLS, d.cfg.Names, relayTiming)
	scheme := "http://"
	if d.cfg.TLS != nil {
		scheme = "https://"
	}
	client := connect.NewClient[wire.Chunk, wire.Chunk](hc, scheme+to.address+procRelay, wire.ClientOptions)
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	end := func() { cancel(); hc.CloseIdleConnections() }
	opening := context.AfterFunc(ctx, cancel)
	s := client.CallBidiStream(life)
	to.control.joins().set(s.RequestHeader())
	err := s.Send(nil)
	if err == nil {
		_, err = s.Receive()
	}
	if !opening() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		end()
		return nil, wire.Unwrap(err)
	}
	return newStreamConn(s.Receive, s.Send, func() { _ = s.CloseRequest(); end() }), nil
}

// Relays is where a server accepts the connections over which nodes send on requests. It is a net.Listener whose connections
// know their node.
type Relays struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

// NewRelays returns one that nobody has dialled yet.
func NewRelays() *Relays { return &Relays{conns: make(chan net.Conn), done: make(chan struct{})} }

// Accept implements net.Listener.
func (r *Relays) Accept() (net.Conn, error) {
	select {
	case c := <-r.conns:
		return c, nil
	case <-r.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (r *Relays) Close() error {
	r.once.Do(func() { close(r.done) })
	return nil
}

// Addr implements net.Listener.
func (r *Relays) Addr() net.Addr { return tunnelAddr{} }

// relayed is a connection of a node.
type relayed struct {
	net.Conn
	node string
	from net.Addr
}

// RemoteAddr is where the node dialled from.
func (c *relayed) RemoteAddr() net.Addr { return c.from }

// RelayingNode returns the id of the node whose connection it is; "" for others.
func RelayingNode(c net.Conn) string {
	if r, ok := c.(*relayed); ok {
		return r.node
	}
	return ""
}

// Handler accepts the connections of nodes, and leaves all else to next, which Handler makes.
func (r *Relays) Handler(auth Authenticator, next http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", next)
	mux.Handle(procRelay, connect.NewBidiStreamHandler(procRelay, func(ctx context.Context, s *chunkStream) error {
		h := s.RequestHeader()
		node := h.Get(nodeHeader)
		if err := admitted(ctx, auth, procRelay, CallerOf(h)); err != nil {
			return wire.Wrap(err)
		}
		if err := s.Send(&wire.Chunk{}); err != nil { // says: accepted
			return err
		}
		return r.serve(ctx, node, s)
	}, wire.HandlerOptions))
	return mux
}

// serve hands the connection over and carries its bytes until one side ends. Between the two stands a pipe, which has the
// deadlines that an HTTP server needs.
func (r *Relays) serve(ctx context.Context, node string, s *chunkStream) error {
	ours, theirs := net.Pipe()
	defer ours.Close()
	select {
	case r.conns <- &relayed{theirs, node, remoteAddr(s.Peer().Addr)}:
	case <-r.done:
		return wire.Wrap(drover.Errorf(drover.Unavailable, "the server is stopping"))
	case <-ctx.Done():
		return ctx.Err()
	}
	defer context.AfterFunc(ctx, func() { _ = ours.Close() })()
	var received sync.WaitGroup
	received.Go(func() { // ends when the stream or the pipe does
		defer ours.Close()
		for {
			m, err := s.Receive()
			if err != nil {
				return
			}
			if _, err := ours.Write(m.Data); err != nil {
				return
			}
		}
	})
	buf := make([]byte, 32<<10)
	for {
		n, err := ours.Read(buf)
		if n > 0 {
			if err := s.Send(&wire.Chunk{Data: buf[:n]}); err != nil {
				return nil // the node is gone
			}
		}
		if err != nil {
			return nil // the HTTP server closed it, or the node did
		}
	}
}

// remoteAddr is an address as a text.
type remoteAddr string

// Network implements net.Addr.
func (remoteAddr) Network() string { return "tcp" }

// String implements net.Addr.
func (a remoteAddr) String() string { return string(a) }
