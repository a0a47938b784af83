package callers

import (
	"net"
	"net/http"

	"github.com/drover-project/drover/internal/server/auditing"
	"github.com/drover-project/drover/internal/telemetry"
)

// Counted counts what nodes and other servers ask, under Nomad's names, and records whom it refuses.
type Counted struct {
	Samples  *telemetry.Samples
	Refusals auditing.Refusals
}

// Handler counts calls, those of them that only read, and those that are answered with an error.
func (c Counted) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.Samples.Count("nomad.nomad.rpc.request", 1)
		if r.Method == http.MethodGet {
			c.Samples.Count("nomad.nomad.rpc.query", 1)
		}
		answer := &auditing.Failing{ResponseWriter: w}
		if next.ServeHTTP(answer, r); answer.Status >= http.StatusBadRequest {
			c.Samples.Count("nomad.nomad.rpc.request_error", 1)
		}
		c.Refusals.Call(r, answer)
	})
}

// Accepted counts connections, as http.Server.ConnState, where the port is not split (servers.Listen does it there).
func (c Counted) Accepted(_ net.Conn, state http.ConnState) {
	if state == http.StateNew {
		c.Samples.Count("nomad.nomad.rpc.accept_conn", 1)
	}
}
