package httpapi

import (
	"net"
	"sync"
)

// LimitConns bounds the open connections of each remote address: one more is answered 429 and closed. Wrap the bare
// listener with it, below TLS. perIP 0 means no bound.
func LimitConns(ln net.Listener, perIP int) net.Listener {
	if perIP <= 0 {
		return ln
	}
	return &limitedListener{Listener: ln, max: perIP, open: map[string]int{}}
}

type limitedListener struct {
	net.Listener
	max  int
	mu   sync.Mutex
	open map[string]int // by address, without port; guarded by mu
}

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
		_, _ = c.Write([]byte(tooManyConns)) // fits the socket's buffer, so it does not block
		_ = c.Close()
	}
}

func (l *limitedListener) take(host string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[host] >= l.max {
		return false
	}
	l.open[host]++
	return true
}

func (l *limitedListener) give(host string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[host]--; l.open[host] == 0 {
		delete(l.open, host)
	}
}

type countedConn struct {
	net.Conn
	done func()
}

// Close closes the connection and counts it no more.
func (c *countedConn) Close() error {
	defer c.done()
	return c.Conn.Close()
}
