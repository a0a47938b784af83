package httpapi

import (
	"net/http"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/httpapi/replay"
)

// What a server keeps (runners, their executions, claims) goes to another one while requests are on their way, and then its handler says
// NotLeader. One that another server sent on is refused, and sent elsewhere from there. One that a client sent is decided once more here.

// How long that goes on, and how often.
const (
	movesFor   = 2 * time.Second
	movesEvery = 50 * time.Millisecond
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
	var body *replay.Body
	again := r.ContentLength >= 0 && r.ContentLength <= replay.Most // it can be read twice
	if again {
		body = replay.Keep(r.Body)
	}
	for ends := e.Clock.Now().Add(movesFor); ; {
		if again {
			r.Body = body.Reader()
		}
		err := e.route.Handle(w, r)
		if drover.CodeOf(err) != drover.NotLeader || w.begun() || !again || !e.Clock.Now().Before(ends) ||
			!clock.Sleep(r.Context(), e.Clock, movesEvery) {
			return err
		}
		w.reset()
		r.Body = body.Reader()
		if done, err := e.Relay.Elsewhere(w, r, e.route.Where); done || err != nil {
			return err
		}
	}
}
