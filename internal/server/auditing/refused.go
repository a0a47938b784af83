package auditing

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

// Refusals records who was refused where no face is. A nil Log records nothing.
type Refusals struct{ Log *audit.Log }

// Call records that a call to the port of nodes was refused. A tunnel that is refused makes no line of its own: the node registers
// over the same connection.
func (r Refusals) Call(req *http.Request, w *Failing) {
	if r.Log == nil || !w.refused() {
		return
	}
	var said struct{ Message string }
	if json.Unmarshal(w.said, &said) != nil || said.Message == "" {
		said.Message = strings.TrimSpace(string(w.said))
	}
	r.Log.Refused(&audit.Event{
		Class: audit.Change, Method: req.Method, Path: req.URL.Path, Route: "rpc", Object: link.CallerOf(req.Header).NodeID,
		Remote: req.RemoteAddr, UserAgent: req.UserAgent(), Status: w.Status, Reason: said.Message, Needs: nodesNeed,
	})
}

// Revoked records that a connection of somebody who was revoked was refused or closed.
func (r Refusals) Revoked(from net.Addr, by *cluster.Revocation) {
	r.Log.Refused(&audit.Event{
		Class: audit.Change, Method: "TLS", Path: "/", Route: "connection", Object: by.ID, Remote: from.String(), Status: http.StatusForbidden,
		Reason: by.ID + " is revoked", Needs: "a certificate that is not revoked",
	})
}

// Task records that a request to a task's socket was refused before it came to the faces.
func (r Refusals) Task(t taskapi.Task, req *http.Request, status int, why string) {
	path := req.URL.Path
	if token := httpapi.Token(req); token != "" { // somebody may have put it where it does not belong
		path = strings.ReplaceAll(path, token, "<token>")
	}
	r.Log.Refused(&audit.Event{
		Class: audit.Change, Method: req.Method, Path: path, Route: "task API", Object: t.AllocID, Remote: req.RemoteAddr,
		UserAgent: req.UserAgent(), Status: status, Reason: why, Needs: "a token, within the bounds of the socket",
	})
}

// Failing notes whether a request is answered with an error, and what is said of a refusal.
type Failing struct {
	http.ResponseWriter
	Status int
	said   []byte // of a refusal, at most mostSaid bytes
}

// mostSaid bounds what is kept of a refusal's words.
const mostSaid = 512

// WriteHeader begins the answer.
func (w *Failing) WriteHeader(status int) {
	w.Status = status
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *Failing) Write(b []byte) (int, error) {
	if w.refused() {
		w.said = append(w.said, b[:min(len(b), mostSaid-len(w.said))]...)
	}
	return w.ResponseWriter.Write(b)
}

func (w *Failing) refused() bool {
	return w.Status == http.StatusUnauthorized || w.Status == http.StatusForbidden || w.Status == http.StatusTooManyRequests
}

// Flush implements http.Flusher.
func (w *Failing) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() } // who cannot has sent all

// Unwrap is for http.ResponseController.
func (w *Failing) Unwrap() http.ResponseWriter { return w.ResponseWriter }
