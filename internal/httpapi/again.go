package httpapi

import (
	"bytes"
	"io"
	"net/http"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
)

// What a server keeps (runners, their executions, claims) goes to another one while requests are on their way, and then its handler says
// NotLeader. One that another server sent on is refused, and sent elsewhere from there. One that a client sent is decided once more here.

// How long that goes on, how often, and how long a body may be that can be read twice.
const (
	movesFor   = 2 * time.Second
	movesEvery = 50 * time.Millisecond
	keepBody   = 64 << 10
)

// moves reports whether what the request is for goes from server to server.
func (w Where) moves() bool {
	return w.Place == AtRunner || w.Place == AtExecution || w.Place == AtClaim
}

// here has the handler answer, or whoever has by now what the request is for.
func (e *endpoint) here(w *response, r *http.Request) error {
	if hop, relayed := HopOf(r.Context()); e.Relay == nil || !e.route.Where.moves() || relayed && hop.Way == FromServer {
		err := e.route.Handle(w, r)
		if err != nil {
			refuse(w, r, e.route.Where, err)
		}
		return err
	}
	body := keptBody{from: r.Body, whole: r.ContentLength >= 0 && r.ContentLength <= keepBody}
	for ends := e.Clock.Now().Add(movesFor); ; {
		r.Body = body.again()
		err := e.route.Handle(w, r)
		if drover.CodeOf(err) != drover.NotLeader || w.begun() || !body.whole || !e.Clock.Now().Before(ends) ||
			!clock.Sleep(r.Context(), e.Clock, movesEvery) {
			return err
		}
		w.reset()
		r.Body = body.again()
		if done, err := e.Relay.Elsewhere(w, r, e.route.Where); done || err != nil {
			return err
		}
		if kept, ok := r.Body.(*reading); !ok || kept.of != &body { // the relay has read it, and keeps it by itself
			body = keptBody{from: r.Body, whole: body.whole}
		}
	}
}

// keptBody is a body of which all is kept that was read, if it is short.
type keptBody struct {
	from  io.ReadCloser
	whole bool // it can be read again
	read  bytes.Buffer
}

// again returns the body from its beginning.
func (b *keptBody) again() io.ReadCloser {
	if b.from == nil || b.from == http.NoBody || !b.whole {
		return b.from
	}
	return &reading{of: b}
}

// reading reads it once.
type reading struct {
	of *keptBody
	at int
}

// Read implements io.Reader.
func (r *reading) Read(p []byte) (n int, err error) {
	if kept := r.of.read.Bytes(); r.at < len(kept) {
		n = copy(p, kept[r.at:])
	} else {
		n, err = r.of.from.Read(p)
		r.of.read.Write(p[:n])
	}
	r.at += n
	return n, err
}

// Close implements io.Closer.
func (r *reading) Close() error { return r.of.from.Close() }
