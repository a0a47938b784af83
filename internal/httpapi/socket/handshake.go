package socket

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/coder/websocket"
)

// Refusal is why a request cannot become a websocket: an HTTP status and the reason.
type Refusal struct {
	Status int
	Reason string
}

// Check says whether websocket.Accept will refuse the request, before anything is done for the one who sent it; nil if
// it will not.
func Check(r *http.Request) *Refusal {
	if plain(r.Header) {
		return nil
	}
	d := &dry{header: http.Header{}}
	_, _ = websocket.Accept(d, r, nil) // cannot succeed: d is no http.Hijacker, which is looked at last
	if d.status == http.StatusNotImplemented {
		return nil
	}
	return &Refusal{d.status, strings.TrimSpace(d.reason.String())}
}

// plain reports whether it is the handshake of most programs, which no closer look is needed for.
func plain(h http.Header) bool {
	key, err := base64.StdEncoding.DecodeString(h.Get("Sec-WebSocket-Key"))
	return err == nil && len(key) == 16 && len(h["Sec-Websocket-Key"]) == 1 && h.Get("Sec-WebSocket-Version") == "13" &&
		h.Get("Connection") == "Upgrade" && h.Get("Upgrade") == "websocket" && len(h["Origin"]) == 0
}

// dry is an http.ResponseWriter that answers nobody.
type dry struct {
	header http.Header
	status int
	reason bytes.Buffer
}

func (d *dry) Header() http.Header               { return d.header }
func (d *dry) WriteHeader(status int)            { d.status = status }
func (d *dry) Write(p []byte) (n int, err error) { return d.reason.Write(p) }
