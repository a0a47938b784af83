package web

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/httpapi/web/cookies"
)

// TestATerminalIsTheAPIs has the API see the viewer's token, and nothing else of what the browser sent.
func TestATerminalIsTheAPIs(t *testing.T) {
	t.Parallel()
	var got *http.Request
	h := of(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		w.WriteHeader(http.StatusTeapot)
	}))
	q := url.Values{"task": {hostile}, "command": {`["/bin/sh"]`}, "ws_handshake": {"true"}}
	address := "http://localhost:4646/ui/allocations/a%2F1/terminal/live?" + q.Encode()
	r := httptest.NewRequestWithContext(t.Context(), "GET", address, http.NoBody)
	r.Header.Set("Upgrade", "websocket")
	r.Header.Set("Sec-WebSocket-Key", "k")
	r.Header.Set("Origin", "http://localhost:4646")
	r.Header.Set("X-Nomad-Token", "another")
	w := httptest.NewRecorder()
	cookies.SetToken(w, r, "good")
	r.AddCookie(w.Result().Cookies()[0])
	w = httptest.NewRecorder()
	h.ServeHTTP(w, r)
	require.Equal(t, http.StatusTeapot, w.Code)
	require.Equal(t, "/v1/client/allocation/a%2F1/exec", got.URL.EscapedPath())
	require.Equal(t, url.Values{"task": {hostile}, "command": {`["/bin/sh"]`}, "tty": {"true"}}, got.URL.Query())
	require.Equal(t, http.Header{"Upgrade": {"websocket"}, "Sec-Websocket-Key": {"k"}, "X-Drover-Token": {"good"}}, got.Header)

	got = nil
	r.Header.Set("Origin", "http://evil.example")
	w = httptest.NewRecorder()
	h.ServeHTTP(w, r)
	require.Equal(t, http.StatusForbidden, w.Code, "a page of another origin opens none")
	require.Nil(t, got)
}
