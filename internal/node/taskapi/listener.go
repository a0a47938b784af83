package taskapi

import (
	"context"
	"net"
	"sync"

	"golang.org/x/time/rate"

	"github.com/drover-project/drover/internal/clock"
)

// listener accepts only so many connections at once, and so many a second. Others wait in the kernel, and then in their own connect.
type listener struct {
	*net.UnixListener
	life   context.Context // ends when nothing is accepted any more
	places chan struct{}   // holds an element for each open connection, and for the one that is awaited
	rate   *rate.Limiter
	clock  clock.Clock

	mu   sync.Mutex
	open map[*conn]struct{} // guarded by mu
}

func newListener(life context.Context, ln *net.UnixListener, c clock.Clock) *listener {
	return &listener{
		UnixListener: ln, life: life, places: make(chan struct{}, maxConns), rate: rate.NewLimiter(connRate, connRate), clock: c,
		open: map[*conn]struct{}{},
	}
}

// Accept returns the next connection when there is a place for it.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case l.places <- struct{}{}:
	case <-l.life.Done():
		return nil, net.ErrClosed
	}
	c, err := l.AcceptUnix()
	if err != nil {
		<-l.places
		return nil, err
	}
	now := l.clock.Now()
	if wait := l.rate.ReserveN(now, 1).DelayFrom(now); wait > 0 {
		clock.Sleep(l.life, l.clock, wait)
	}
	own := &conn{UnixConn: c, listener: l}
	l.mu.Lock()
	l.open[own] = struct{}{}
	l.mu.Unlock()
	if l.life.Err() != nil { // cut may not have seen it
		_ = own.Close()
		return nil, net.ErrClosed
	}
	return own, nil
}

// cut closes all connections.
func (l *listener) cut() {
	l.mu.Lock()
	all := make([]*conn, 0, len(l.open))
	for c := range l.open {
		all = append(all, c)
	}
	l.mu.Unlock()
	for _, c := range all {
		_ = c.Close()
	}
}

// conn is a connection that has a place.
type conn struct {
	*net.UnixConn
	listener *listener
	once     sync.Once
}

// Close closes the connection and gives its place to the next one.
func (c *conn) Close() error {
	err := net.ErrClosed
	c.once.Do(func() {
		err = c.UnixConn.Close()
		c.listener.mu.Lock()
		delete(c.listener.open, c)
		c.listener.mu.Unlock()
		<-c.listener.places
	})
	return err
}
