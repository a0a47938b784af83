package httpapi

import (
	"io"
	"net/http"
	"time"
)

// The bounds of reading a refused request's body.
const (
	minDrain = 256 << 10
	maxDrain = 64 << 20
	drainFor = 30 * time.Second
)

// drain reads what a client still sends of a body though it was answered already. Many clients read the answer only when
// they have sent all; if the connection was closed before, they would see it reset instead of the reason.
func (e *endpoint) drain(w *response, r *http.Request, body io.Reader) {
	switch {
	case body == nil, body == http.NoBody, w.hijacked:
		return
	case r.ContentLength >= 0 && r.ContentLength <= minDrain && !r.Close: // net/http does it, but where it closes
		return
	case r.Header.Get("Expect") != "": // it reads the answer first
		return
	case w.status == http.StatusUnauthorized, w.status == http.StatusForbidden: // strangers
		return
	}
	ctl := http.NewResponseController(w)
	if ctl.Flush() != nil || ctl.SetReadDeadline(e.Clock.Now().Add(drainFor)) != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, body, maxDrain) // what cannot be read does not matter
	_ = ctl.SetReadDeadline(time.Time{})
}
