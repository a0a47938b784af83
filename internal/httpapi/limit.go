package httpapi

import (
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/clock"
)

// LimitConns bounds the open connections of each remote address: one more is answered 429 and closed. Wrap the bare
// listener with it, below TLS. perIP 0 means no bound.
func LimitConns(ln net.Listener, perIP int) net.Listener {
	if perIP <= 0 {
		return ln
	}
	return &limitedListener{Listener: ln, counts: counts{max: perIP, open: map[string]int{}}, refusing: make(chan struct{}, 64)}
}

// LimitLinks is LimitConns for a listener that is not asked by HTTP/1.1: one connection more is closed.
func LimitLinks(ln net.Listener, perIP int) net.Listener {
	if perIP <= 0 {
		return ln
	}
	return &limitedListener{Listener: ln, counts: counts{max: perIP, open: map[string]int{}}} // no refusal is ever under way
}

// limitedListener counts the open connections of each address. At most 64 refusals are under way at once.
type limitedListener struct {
	net.Listener
	counts
	// refusing holds an element for each connection that is being refused.
	refusing chan struct{}
}

// counts is how many things each address has open.
type counts struct {
	max int // of one address

	mu   sync.Mutex
	open map[string]int // by address, without port; guarded by mu
}

// tooManyConns is a whole answer, written without a server: its length must be that of its text.
const tooManyConns = "HTTP/1.1 429 Too Many Requests\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n" +
	"Content-Length: 57\r\n\r\nYour IP is issuing too many concurrent connections, wait\n"

// Accept returns the next connection that is within the bound.
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		host, _, err := net.SplitHostPort(c.RemoteAddr().String())
		if err != nil {
			return c, nil //nolint:nilerr // not a network of addresses: nothing to count by
		}
		if l.take(host) {
			return &countedConn{Conn: c, done: sync.OnceFunc(func() { l.give(host) })}, nil
		}
		select {
		case l.refusing <- struct{}{}:
			go l.refuse(c) // ends within refusePatience
		default:
			_ = c.Close() // a flood is not answered
		}
	}
}

const refusePatience = time.Second

// refuse answers 429 once the request begins: an answer that comes before it is taken for a broken connection.
func (l *limitedListener) refuse(c net.Conn) {
	defer func() { <-l.refusing }()
	defer c.Close()
	if c.SetDeadline(clock.Wall{}.Now().Add(refusePatience)) != nil {
		return
	}
	if n, _ := c.Read(make([]byte, 4096)); n > 0 {
		_, _ = c.Write([]byte(tooManyConns)) // fails only when the caller is gone
	}
}

// LimitRequests bounds the requests that each remote address has under way over HTTP/2, where one connection carries many: one more is
// answered 429. Over HTTP/1.1 the connections are what is bounded, with LimitConns. perIP 0 means no bound.
func LimitRequests(h http.Handler, perIP int) http.Handler {
	if perIP <= 0 {
		return h
	}
	under := &counts{max: perIP, open: map[string]int{}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.RemoteAddr)
		if r.ProtoMajor < 2 || err != nil {
			h.ServeHTTP(w, r)
			return
		}
		if !under.take(host) {
			http.Error(w, "Your IP has too many concurrent requests, wait", http.StatusTooManyRequests)
			return
		}
		defer under.give(host)
		h.ServeHTTP(w, r)
	})
}

// take counts one more of the address; false, and no change, if it has as many as it may.
func (l *counts) take(host string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[host] >= l.max {
		return false
	}
	l.open[host]++
	return true
}

// give counts one less; addresses without any are forgotten, so that the map does not grow for ever.
func (l *counts) give(host string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[host]--; l.open[host] == 0 {
		delete(l.open, host)
	}
}

// countedConn counts itself out once, at its first Close.
type countedConn struct {
	net.Conn
	done func()
}

// Close closes the connection and counts it no more.
func (c *countedConn) Close() error {
	defer c.done()
	return c.Conn.Close()
}
