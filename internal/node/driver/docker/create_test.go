package docker

import (
	"context"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAStartThatEndsWhileTheDaemonCreates leaves no container, though the daemon goes on with what it began.
func TestAStartThatEndsWhileTheDaemonCreates(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", strings.TrimPrefix(endpoint, "unix://"))
	}}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: "d"})
	proxy.Transport = transport
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	require.NoError(t, err)
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/containers/create") {
			cancel()
			r = r.WithContext(context.WithoutCancel(r.Context())) // as the daemon does
		}
		proxy.ServeHTTP(w, r)
	})}
	go func() { _ = srv.Serve(listener) }() // ends with Close
	t.Cleanup(func() {
		require.NoError(t, srv.Close())
		transport.CloseIdleConnections()
	})
	b := newBench(t, func(c *Config) { c.Endpoint = "unix://" + socket })
	_, err = b.Start(ctx, b.spec(t, script2("sleep 600", nil)))
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, b.containers(t))
}
