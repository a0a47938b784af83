package server

import (
	"encoding/json"
	"net"
	"net/http"
	"strings"

	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/link"
	"github.com/drover-project/drover/internal/node/taskapi"
)

// nodesNeed is what calls to the port of nodes take.
const nodesNeed = "a node's certificate, token or secret"

// recordRefused records that a call to the port of nodes was refused. A tunnel that is refused makes no line of its own: the node registers
// over the same connection.
func (a *Agent) recordRefused(r *http.Request, w *failing) {
	if a.audit == nil || !w.refused() {
		return
	}
	var said struct{ Message string }
	if json.Unmarshal(w.said, &said) != nil || said.Message == "" {
		said.Message = strings.TrimSpace(string(w.said))
	}
	a.audit.Refused(&audit.Event{
		Class: audit.Change, Method: r.Method, Path: r.URL.Path, Route: "rpc", Object: link.CallerOf(r.Header).NodeID, Remote: r.RemoteAddr,
		UserAgent: r.UserAgent(), Status: w.status, Reason: said.Message, Needs: nodesNeed,
	})
}

// recordRevoked records that a connection of somebody who was revoked was refused or closed.
func (a *Agent) recordRevoked(from net.Addr, r *cluster.Revocation) {
	a.audit.Refused(&audit.Event{
		Class: audit.Change, Method: "TLS", Path: "/", Route: "connection", Object: r.ID, Remote: from.String(), Status: http.StatusForbidden,
		Reason: r.ID + " is revoked", Needs: "a certificate that is not revoked",
	})
}

// recordTask records that a request to a task's socket was refused before it came to the faces.
func (a *Agent) recordTask(t taskapi.Task, r *http.Request, status int, why string) {
	path := r.URL.Path
	if token := httpapi.Token(r); token != "" { // somebody may have put it where it does not belong
		path = strings.ReplaceAll(path, token, "<token>")
	}
	a.audit.Refused(&audit.Event{
		Class: audit.Change, Method: r.Method, Path: path, Route: "task API", Object: t.AllocID, Remote: r.RemoteAddr,
		UserAgent: r.UserAgent(), Status: status, Reason: why, Needs: "a token, within the bounds of the socket",
	})
}

// failing notes whether a request is answered with an error, and what is said of a refusal.
type failing struct {
	http.ResponseWriter
	status int
	said   []byte // of a refusal, at most mostSaid bytes
}

// mostSaid bounds what is kept of a refusal's words.
const mostSaid = 512

// WriteHeader begins the answer.
func (w *failing) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *failing) Write(b []byte) (int, error) {
	if w.refused() {
		w.said = append(w.said, b[:min(len(b), mostSaid-len(w.said))]...)
	}
	return w.ResponseWriter.Write(b)
}

func (w *failing) refused() bool {
	return w.status == http.StatusUnauthorized || w.status == http.StatusForbidden || w.status == http.StatusTooManyRequests
}

// Flush implements http.Flusher.
func (w *failing) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() } // who cannot has sent all

// Unwrap is for http.ResponseController.
func (w *failing) Unwrap() http.ResponseWriter { return w.ResponseWriter }
