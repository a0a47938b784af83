package server

import (
	"fmt"
	"net/http"
	"time"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/throttle"
	"github.com/drover-project/drover/internal/link"
	"github.com/drover-project/drover/internal/telemetry"
)

// How often an address may come to the port of nodes with nothing that this server's own state vouches for. Each such call is answered
// after the leader was asked, and one for a certificate after it was looked at.
const (
	strangersRate  = 10 // a second
	strangersBurst = 100
)

// strangers bounds the calls of those whom this server does not know. Nodes that it knows are never bounded, wherever they are.
func (a *Agent) strangers(next http.Handler) http.Handler {
	refused := a.metrics.Counter("drover.rpc.refused_strangers", "calls to the port of nodes that came too often from one address, "+
		"of callers whom this server does not know")
	var told telemetry.Seldom
	return boundStrangers(next, a.deps.Clock, func(r *http.Request) bool {
		return a.control.gate.Vouches(r.TLS, r.URL.Path, link.CallerOf(r.Header))
	}, func(address string) {
		refused.WithLabelValues().Inc()
		told.Warn(a.deps.Log, a.deps.Clock.Now(), "a stranger calls the port of nodes too often", "part", "rpc", "address", address)
	})
}

// boundStrangers answers 429 to who comes too often from an address and is not known. refused is told of the address.
func boundStrangers(next http.Handler, c clock.Clock, known func(*http.Request) bool, refused func(address string)) http.Handler {
	limits := throttle.New[string](strangersRate, strangersBurst)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if known(r) {
			next.ServeHTTP(w, r)
			return
		}
		from, _ := httpapi.AddressOf(r)
		address := from.String()
		wait, ok := limits.Admit(address, c.Now())
		if ok {
			next.ServeHTTP(w, r)
			return
		}
		refused(address)
		w.Header().Set("Retry-After", httpapi.RetryAfter(wait))
		http.Error(w, fmt.Sprintf("too many calls of %s without a certificate, token or secret that this server knows: try again in %s",
			address, max(wait, time.Millisecond).Round(time.Millisecond)), http.StatusTooManyRequests)
	})
}
