package httpapi

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

// Bodies that a caller keeps under way hold no more than its share, and those of all callers no more than all may. A caller that
// is refused because of others is told to come back; one that asks for too much alone is told so before its body is read. What
// has ended holds nothing.
func TestBodiesUnderWayAreBounded(t *testing.T) {
	t.Parallel()
	h := NewHeld(100, 250)
	under, ended := map[string]chan struct{}{}, make(chan struct{})
	read := func(who string, n int, keep bool) error {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPut, "/", strings.NewReader(strings.Repeat("x", n)))
		r.RemoteAddr, r.ContentLength = who, -1 // it is not told how long it is
		result, left := make(chan error), make(chan struct{})
		go func() { // ends when it is told to
			h.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				err := counted(r)
				if err == nil {
					_, err = ReadBody(r)
				}
				result <- err
				if keep {
					<-left
				}
			})).ServeHTTP(httptest.NewRecorder(), r)
			ended <- struct{}{}
		}()
		err := <-result
		if keep {
			under[who] = left
		} else {
			<-ended
		}
		return err
	}
	require.NoError(t, read("a", 90, true))
	require.NoError(t, read("a", 10, false))
	require.Equal(t, drover.RateLimited, drover.CodeOf(read("a", 11, false)))
	require.Equal(t, drover.TooLarge, drover.CodeOf(read("b", 101, false)))
	require.NoError(t, read("b", 100, true))
	require.NoError(t, read("c", 60, true))
	require.Equal(t, drover.RateLimited, drover.CodeOf(read("d", 1, false)), "all together")
	require.NoError(t, read("d", 0, false))
	announced := httptest.NewRequestWithContext(t.Context(), http.MethodPut, "/", strings.NewReader(strings.Repeat("x", 101)))
	h.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		require.Equal(t, drover.TooLarge, drover.CodeOf(counted(r)), "before it is read")
	})).ServeHTTP(httptest.NewRecorder(), announced)
	close(under["b"])
	<-ended
	require.NoError(t, read("d", 100, false))
	close(under["a"])
	close(under["c"])
	<-ended
	<-ended
	require.Empty(t, h.by)
	require.Zero(t, h.total)
}
