package link

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"

	"github.com/drover-project/drover"
)

// line is a node's only connection with a server: the tunnel and all calls go over it. Whoever needs it dials it, and dials
// anew once it broke. It is the http2.ClientConnPool of its transport.
type line struct {
	address   string
	tls       func() *tls.Config // the newest, asked for each connection; nil is clear text
	names     []string           // see named
	patience  func() time.Duration
	transport *http2.Transport

	turn  chan struct{} // has one element while nobody dials
	conn  atomic.Pointer[http2.ClientConn]
	heard atomic.Uint64 // reads that brought something
	tries atomic.Int32  // to connect that failed, since one did not
}

// newLine makes one. patience is how long a server may take to accept a connection, asked before each attempt.
func newLine(address string, secure func() *tls.Config, names []string, patience func() time.Duration) *line {
	l := &line{address: address, tls: secure, names: names, patience: patience, turn: make(chan struct{}, 1)}
	l.turn <- struct{}{}
	l.transport = &http2.Transport{
		ConnPool: l, ReadIdleTimeout: lasting.idle, PingTimeout: lasting.ping, AllowHTTP: secure == nil, DisableCompression: true,
	}
	return l
}

// client speaks HTTP/2 over the line, whatever a request's address is.
func (l *line) client() *http.Client { return &http.Client{Transport: l.transport} }

// GetClientConn implements http2.ClientConnPool.
func (l *line) GetClientConn(r *http.Request, _ string) (*http2.ClientConn, error) {
	if c := l.conn.Load(); c != nil && c.CanTakeNewRequest() {
		return c, nil
	}
	select {
	case <-l.turn:
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	defer func() { l.turn <- struct{}{} }()
	if c := l.conn.Load(); c != nil && c.CanTakeNewRequest() { // another one dialled
		return c, nil
	}
	conn, err := l.dial(r.Context())
	if err != nil {
		return nil, err
	}
	c, err := l.transport.NewClientConn(&listened{Conn: conn, heard: &l.heard})
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	l.conn.Store(c)
	return c, nil
}

// MarkDead implements http2.ClientConnPool.
func (l *line) MarkDead(c *http2.ClientConn) { l.conn.CompareAndSwap(c, nil) }

// dial connects. A server that was too busy to accept is given twice the time at the next try. Thousands of nodes that give up
// early and dial again would keep it busy.
func (l *line) dial(ctx context.Context) (conn net.Conn, err error) {
	defer func() {
		if l.tries.Add(1); err == nil {
			l.tries.Store(0)
		}
	}()
	d := net.Dialer{Timeout: longer(l.patience(), int(l.tries.Load()))}
	if l.tls == nil {
		return d.DialContext(ctx, "tcp", l.address)
	}
	host, _, err := net.SplitHostPort(l.address)
	if err != nil {
		return nil, drover.Errorf(drover.Invalid, "server %s: %w", l.address, err)
	}
	cfg := l.tls().Clone()
	cfg.NextProtos = []string{http2.NextProtoTLS}
	if cfg.ServerName == "" {
		cfg.ServerName = host
	}
	return (&tls.Dialer{NetDialer: &d, Config: named(cfg, l.names)}).DialContext(ctx, "tcp", l.address)
}

// ping asks the server for a sign of life. A line without a connection has nothing to answer: the next call finds that out.
// Errors: Unavailable if nothing at all came within the time, so that a line that is merely full is not taken for a dead one.
func (l *line) ping(ctx context.Context, within time.Duration) error {
	c := l.conn.Load()
	if c == nil || !c.CanTakeNewRequest() {
		return nil
	}
	before := l.heard.Load()
	try, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if err := c.Ping(try); err != nil && ctx.Err() == nil && l.heard.Load() == before {
		return drover.Errorf(drover.Unavailable, "server %s does not answer: %w", l.address, err)
	}
	return nil
}

// close ends the connection, if there is one.
func (l *line) close() {
	if c := l.conn.Swap(nil); c != nil {
		_ = c.Close()
	}
}

// listened counts the reads of a connection that brought something.
type listened struct {
	net.Conn
	heard *atomic.Uint64
}

// Read implements net.Conn.
func (c *listened) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.heard.Add(1)
	}
	return n, err
}
