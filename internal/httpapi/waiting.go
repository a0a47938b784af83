package httpapi

import (
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/clock"
)

// The bounds of connections from one address on which no request is at work. Those that serve one are not counted: a
// client that follows a thousand executions is no attack, and the streams have a bound of their own.
const (
	maxWaiting   = 100
	halfPatience = time.Second      // for the whole head of a first request, once there are more
	idlePatience = 10 * time.Second // for the next request, once there are more
)

// waiting knows the connections that wait for a request, by address, and closes those beyond the bound which wait too
// long. It closes none at once: hundreds that open together and send what they have to are served.
type waiting struct {
	clock clock.Clock

	mu     sync.Mutex
	conns  map[net.Conn]*waiter // guarded by mu: all that are open
	byAddr map[string]int       // guarded by mu: how many of them wait
}

// waiter is a connection. It is asked for its address once: each request makes it begin and end to wait.
type waiter struct {
	host  string
	waits bool
	turn  uint64 // tells one waiting from the next
}

func newWaiting(c clock.Clock) *waiting {
	return &waiting{clock: c, conns: map[net.Conn]*waiter{}, byAddr: map[string]int{}}
}

// changed is http.Server's ConnState.
func (w *waiting) changed(c net.Conn, state http.ConnState) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if state == http.StateNew {
		if host, _, err := net.SplitHostPort(c.RemoteAddr().String()); err == nil { // else not a network of addresses: nothing to count by
			w.conns[c] = &waiter{host: host}
		}
	}
	one := w.conns[c]
	if one == nil {
		return
	}
	switch state {
	case http.StateNew:
		w.begin(c, one, halfPatience)
	case http.StateIdle:
		w.begin(c, one, idlePatience)
	case http.StateActive:
		w.end(one)
	case http.StateHijacked, http.StateClosed:
		w.end(one)
		delete(w.conns, c)
	}
}

// begin needs mu.
func (w *waiting) begin(c net.Conn, one *waiter, patience time.Duration) {
	if !one.waits {
		w.byAddr[one.host]++
	}
	one.waits = true
	one.turn++
	if turn := one.turn; w.byAddr[one.host] > maxWaiting {
		w.clock.AfterFunc(patience, func() { w.late(c, one, turn) })
	}
}

// end needs mu.
func (w *waiting) end(one *waiter) {
	if !one.waits {
		return
	}
	one.waits = false
	if w.byAddr[one.host]--; w.byAddr[one.host] == 0 {
		delete(w.byAddr, one.host)
	}
}

// late closes a connection that waits since the turn, if there are still too many.
func (w *waiting) late(c net.Conn, one *waiter, turn uint64) {
	w.mu.Lock()
	over := one.waits && one.turn == turn && w.byAddr[one.host] > maxWaiting
	if over {
		w.end(one)
	}
	w.mu.Unlock()
	if over {
		_ = c.Close() // the server finds it closed
	}
}
