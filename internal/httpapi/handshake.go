package httpapi

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/clock"
)

// Handshakes says how a listener's connections are encrypted.
type Handshakes struct {
	TLS    *tls.Config
	Within time.Duration // of a connection's begin; above 0
	// Most bounds the handshakes of one address that are under way: what dials and says nothing costs a descriptor for as long. 0 is no bound.
	Most  int
	Clock clock.Clock
	Log   *slog.Logger
}

// MostHandshakes is Most for listeners that anybody dials.
const MostHandshakes = maxWaiting

// Encrypt returns a listener of connections whose handshakes are done. Handshakes neither hold each other up nor take longer than they
// may. The listener's goroutines end with Close.
func Encrypt(ln net.Listener, cfg Handshakes) net.Listener {
	l := &encrypted{
		Listener: ln, cfg: cfg, ready: make(chan accepted), under: counts{max: cfg.Most, open: map[string]int{}},
	}
	l.ctx, l.stop = context.WithCancel(context.Background()) //nolint:forbidigo // the listener's own life
	return l
}

// accepted is what Accept returns.
type accepted struct {
	conn net.Conn
	err  error
}

// encrypted is a listener that makes handshakes.
type encrypted struct {
	net.Listener
	cfg   Handshakes
	begin sync.Once
	ready chan accepted
	under counts
	ctx   context.Context // ends at Close
	stop  context.CancelFunc
}

// Accept returns the next connection whose handshake is done.
func (l *encrypted) Accept() (net.Conn, error) {
	l.begin.Do(func() { go l.accept() }) // ends at Close
	select {
	case a := <-l.ready:
		return a.conn, a.err
	case <-l.ctx.Done():
		return nil, net.ErrClosed
	}
}

// Close closes the listener, and what has not finished its handshake.
func (l *encrypted) Close() error {
	l.stop()
	return l.Listener.Close()
}

// accept begins a handshake for each connection. Errors go to who accepts, who knows how long to wait after one.
func (l *encrypted) accept() {
	for l.ctx.Err() == nil {
		raw, err := l.Listener.Accept()
		if err != nil {
			l.hand(accepted{err: err})
			continue
		}
		host, _, err := net.SplitHostPort(raw.RemoteAddr().String())
		switch {
		case err != nil || l.cfg.Most == 0: // or it is not a network of addresses: nothing to count by
			go l.shake(raw, func() {}) // ends within its time, or at Close
		case l.under.take(host):
			go l.shake(raw, func() { l.under.give(host) }) // likewise
		default:
			_ = raw.Close()
		}
	}
}

// hand gives Accept what it returns; false after Close.
func (l *encrypted) hand(a accepted) bool {
	select {
	case l.ready <- a:
		return true
	case <-l.ctx.Done():
		return false
	}
}

// plainAnswer is for who speaks HTTP where HTTPS is spoken.
const plainAnswer = "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"

// shake makes the handshake of a connection and hands it over.
func (l *encrypted) shake(raw net.Conn, done func()) {
	err := raw.SetDeadline(l.cfg.Clock.Now().Add(l.cfg.Within))
	c := tls.Server(raw, l.cfg.TLS)
	if err == nil {
		err = c.HandshakeContext(l.ctx)
	}
	done()
	if err == nil {
		err = raw.SetDeadline(time.Time{})
	}
	if err != nil {
		if wrong, ok := errors.AsType[tls.RecordHeaderError](err); ok && wrong.Conn != nil && looksLikeHTTP(wrong.RecordHeader) {
			_, _ = wrong.Conn.Write([]byte(plainAnswer)) // fails only when the caller is gone
		}
		l.cfg.Log.Debug("a handshake of TLS failed", "from", raw.RemoteAddr(), "error", err)
		_ = raw.Close()
		return
	}
	if !l.hand(accepted{conn: c}) {
		_ = c.Close()
	}
}

// looksLikeHTTP reports whether what came in place of a handshake begins as a request does.
func looksLikeHTTP(header [5]byte) bool {
	switch string(header[:]) {
	case "GET /", "HEAD ", "POST ", "PUT /", "OPTIO", "DELET":
		return true
	}
	return false
}
