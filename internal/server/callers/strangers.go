package callers

import (
	"fmt"
	"net/http"
	"time"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/throttle"
)

// How often an address may come to the port of nodes with nothing that this server's own state vouches for. Each such call is answered
// after the leader was asked, and one for a certificate after it was looked at.
const (
	strangersRate  = 10 // a second
	strangersBurst = 100
)

// BoundStrangers answers 429 to who comes too often from an address and is not known. refused is told of the address.
func BoundStrangers(next http.Handler, c clock.Clock, known func(*http.Request) bool, refused func(address string)) http.Handler {
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
