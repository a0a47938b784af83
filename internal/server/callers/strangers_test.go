package callers

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/clock"
)

// A stranger that calls without end gets no further than its address may, and is told when to come back; who is known from the same
// address, and strangers of others, go on.
func TestStrangersAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		answered, told := 0, []string{}
		h := BoundStrangers(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { answered++ }), clock.Wall{},
			func(r *http.Request) bool { return r.Header.Get("Known") != "" }, func(address string) { told = append(told, address) })
		call := func(address, known string) *httptest.ResponseRecorder {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)
			r.RemoteAddr = address
			r.Header.Set("Known", known)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w
		}
		for range 10 * strangersBurst {
			call("[2001:db8::1]:1", "")
		}
		require.Equal(t, strangersBurst, answered)
		w := call("[2001:db8::2]:1", "") // of the same network
		require.Equal(t, http.StatusTooManyRequests, w.Code)
		require.Equal(t, "1", w.Header().Get("Retry-After"))
		require.Contains(t, w.Body.String(), "too many calls of 2001:db8:: without")
		require.Equal(t, "2001:db8::", told[0])
		require.Equal(t, http.StatusOK, call("[2001:db8::1]:1", "yes").Code)
		require.Equal(t, http.StatusOK, call("192.0.2.1:1", "").Code)
		time.Sleep(time.Second)
		before := answered
		for range strangersBurst {
			call("[2001:db8::1]:1", "")
		}
		require.Equal(t, before+strangersRate, answered)
	})
}
