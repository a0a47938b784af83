package fastpath

import (
	"bufio"
	"context"
	"fmt"
	"math"
	"net"
	"net/http"
	"time"
)

// Bytes that are read at once: of most answers, and of most answers to a handshake. Longer ones are read in turns.
const (
	mostAnswers    = 4096
	mostHandshakes = 512
)

// mostHead bounds what comes before an answer's body: its head, and those of answers before the final one.
const mostHead = 1 << 20

var errLongHead = fmt.Errorf("the head of the server's answer is longer than %d bytes", mostHead)

// conn is a connection to a server. It serves one request at a time.
type conn struct {
	net.Conn
	addr   string
	answer *bufio.Reader
	ends   *ends     // nil: it is not kept
	abort  func()    // closes it
	since  time.Time // when it became idle

	// Of the request at hand.
	sent  int   // bytes
	heard bool  // some byte came
	left  int64 // bytes that may come
	last  bool  // no request may follow

	served bool // requests before
}

func newConn(nc net.Conn, addr string, size int) *conn {
	c := &conn{Conn: nc, addr: addr, ends: endsOf(nc)}
	c.answer = bufio.NewReaderSize(c, size)
	c.abort = func() { _ = nc.Close() }
	return c
}

// Read serves the reader of answers.
func (c *conn) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, errLongHead
	}
	n, err := c.Conn.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	c.heard = c.heard || n > 0
	return n, err
}

// endWith closes the connection when ctx ends, until stop is called, which reports whether it came before that.
func (c *conn) endWith(ctx context.Context) (stop func() bool) {
	if ctx.Done() == nil {
		return endless
	}
	return context.AfterFunc(ctx, c.abort)
}

func endless() bool { return true }

// ask sends a request and reads the head of the final answer.
func (c *conn) ask(r *http.Request, text []byte) (*http.Response, error) {
	c.heard, c.left = false, mostHead
	n, failure := c.Write(text)
	c.sent = n
	if c.unsent() {
		return nil, failure
	}
	for { // a server may answer without reading all of the request, and close
		res, err := http.ReadResponse(c.answer, r) // the caller does
		switch {
		case err != nil && failure != nil:
			return nil, failure
		case err != nil && c.left <= 0: // within a line, that is told as a malformed one
			return nil, errLongHead
		case err != nil:
			return nil, fmt.Errorf("reading the answer: %w", err)
		case res.StatusCode >= 200 || res.StatusCode == http.StatusSwitchingProtocols:
			c.left = math.MaxInt64
			c.last = res.Close || failure != nil
			return res, nil
		}
	}
}

// unsent tells whether the server had ended the connection before it got anything of the request.
func (c *conn) unsent() bool { return c.served && c.sent == 0 }

// mayRepeat tells whether the request, which failed here, may be sent again over a new connection.
func (c *conn) mayRepeat(r *http.Request) bool {
	return c.unsent() || c.served && !c.heard && changesNothing(r)
}

func changesNothing(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return !upgrades(r)
	}
	return r.Header.Get("Idempotency-Key") != "" || r.Header.Get("X-Idempotency-Key") != ""
}

// free tells whether another request may follow: the answer said so, and ended where it should.
func (c *conn) free() bool { return !c.last && c.answer.Buffered() == 0 && c.ends != nil }
