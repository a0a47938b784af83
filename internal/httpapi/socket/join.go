package socket

import (
	"bufio"
	"bytes"
	"net"
	"net/http"
	"sync"

	"github.com/coder/websocket"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
)

// joinMost bounds what is held back for the message behind it.
const joinMost = 4 << 10

// Accept is websocket.Accept; messages of its connection can be joined. Errors: it has answered.
func Accept(w http.ResponseWriter, r *http.Request, c clock.Clock) (*Conn, error) {
	return accept(&hijacking{ResponseWriter: w}, r, c)
}

// AcceptJoined is Accept, as if Join had been called before the answer: it goes out with the first message. Errors: it has
// answered.
func AcceptJoined(w http.ResponseWriter, r *http.Request, c clock.Clock) (*Conn, error) {
	return accept(&hijacking{ResponseWriter: w, joiner: joiner{join: true}}, r, c)
}

// accept answers the handshake on h, which keeps the bytes of the connection under the joiner's control.
func accept(h *hijacking, r *http.Request, c clock.Clock) (*Conn, error) {
	conn, err := websocket.Accept(h, r, nil)
	if err != nil {
		return nil, err
	}
	s := New(conn, c)
	s.joined = &h.joiner
	return s, nil
}

// Join has the next message go out together with the one behind it, or with the closing: that spares a write here and a
// wake-up there. The other one must follow at once, or else Flush.
func (c *Conn) Join() {
	if c.joined != nil {
		c.joined.mu.Lock()
		defer c.joined.mu.Unlock()
		c.joined.join = true
	}
}

// JoinPending is Join if the session has another frame right now, which it reports.
func (c *Conn) JoinPending(s execution.Session) bool {
	r, ok := s.(interface{ Pending() bool })
	if !ok || !r.Pending() {
		return false
	}
	c.Join()
	return true
}

// Flush sends what Join held back, if anything. Errors: those of writing, which the next message meets too.
func (c *Conn) Flush() {
	if c.joined != nil {
		c.joined.flush()
	}
}

// hijacking hands over a connection whose writer joins, the answer to the handshake too.
type hijacking struct {
	http.ResponseWriter
	joiner joiner
}

// WriteHeader keeps the one answer that Hijack gives.
func (h *hijacking) WriteHeader(status int) {
	if status != http.StatusSwitchingProtocols {
		h.ResponseWriter.WriteHeader(status)
	}
}

// Hijack serves http.Hijacker.
func (h *hijacking) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	answer := bytes.NewBufferString("HTTP/1.1 101 Switching Protocols\r\n")
	_ = h.Header().Write(answer) // a buffer takes all
	answer.WriteString("\r\n")
	h.joiner.conn = conn
	if _, err := h.joiner.Write(answer.Bytes()); err != nil {
		_ = conn.Close()
		return nil, nil, err
	}
	rw.Writer.Reset(&h.joiner) // it is empty
	return conn, rw, nil
}

// joiner writes to the connection.
type joiner struct {
	conn net.Conn

	mu   sync.Mutex // guards what follows, and the order of writes
	join bool       // the next write is held back
	held []byte
}

// Write serves io.Writer. What it held back goes out with the next.
func (j *joiner) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	hold := j.join && len(j.held)+len(p) <= joinMost
	j.join = false
	switch {
	case hold:
		j.held = append(j.held, p...)
		return len(p), nil
	case len(j.held) == 0:
		return j.conn.Write(p)
	}
	both := append(j.held, p...)
	j.held = nil
	n, err := j.conn.Write(both)
	return max(0, n-(len(both)-len(p))), err
}

// flush writes what is held. Its error is dropped: the next write fails too, and reports it.
func (j *joiner) flush() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.join = false
	if len(j.held) > 0 {
		_, _ = j.conn.Write(j.held)
		j.held = nil
	}
}
