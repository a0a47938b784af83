package httpapi

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestConnectionsOfOneAddressAreBounded(t *testing.T) {
	t.Parallel()
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	_ = srv.Listener.Close()
	limited := LimitConns(ln, 2).(*limitedListener)
	srv.Listener = limited
	srv.Start()
	defer srv.Close()
	get := func() (int, *http.Transport) {
		tr := &http.Transport{}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL, nil)
		require.NoError(t, err)
		resp, err := tr.RoundTrip(r)
		require.NoError(t, err)
		_ = resp.Body.Close()
		return resp.StatusCode, tr
	}
	code, first := get()
	require.Equal(t, 200, code)
	code, second := get()
	require.Equal(t, 200, code)
	code, third := get()
	require.Equal(t, 429, code)
	third.CloseIdleConnections()
	first.CloseIdleConnections()
	second.CloseIdleConnections()
	require.Len(t, tooManyConns[len(tooManyConns)-57:], 57)
	require.Equal(t, byte('\n'), tooManyConns[len(tooManyConns)-58])
}

func TestNoBound(t *testing.T) {
	t.Parallel()
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = ln.Close() }()
	require.Equal(t, ln, LimitConns(ln, 0))
}
