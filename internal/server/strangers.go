package server

import (
	"net/http"

	"github.com/drover-project/drover/internal/link"
	"github.com/drover-project/drover/internal/server/callers"
	"github.com/drover-project/drover/internal/telemetry"
)

// counted counts the calls of nodes and of other servers.
func (a *Agent) counted() callers.Counted {
	return callers.Counted{Samples: a.samples, Refusals: a.refusals()}
}

// strangers bounds the calls of those whom this server does not know. Nodes that it knows are never bounded, wherever they are.
func (a *Agent) strangers(next http.Handler) http.Handler {
	refused := a.metrics.Counter("drover.rpc.refused_strangers", "calls to the port of nodes that came too often from one address, "+
		"of callers whom this server does not know")
	var told telemetry.Seldom
	return callers.BoundStrangers(next, a.deps.Clock, func(r *http.Request) bool {
		return a.control.gate.Vouches(r.TLS, r.URL.Path, link.CallerOf(r.Header))
	}, func(address string) {
		refused.WithLabelValues().Inc()
		told.Warn(a.deps.Log, a.deps.Clock.Now(), "a stranger calls the port of nodes too often", "part", "rpc", "address", address)
	})
}
