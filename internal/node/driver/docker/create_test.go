package docker

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/node/driver/drivertest"
	"github.com/drover-project/drover/internal/node/supervisor/handover"
)

// between stands between the driver and the daemon: each request for a container to be created goes through change.
func between(t *testing.T, change func(*http.Request) *http.Request) *bench {
	t.Helper()
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
			r = change(r)
		}
		proxy.ServeHTTP(w, r)
	})}
	go func() { _ = srv.Serve(listener) }() // ends with Close
	t.Cleanup(func() {
		require.NoError(t, srv.Close())
		transport.CloseIdleConnections()
	})
	return newBench(t, func(c *Config) { c.Endpoint = "unix://" + socket })
}

// TestAStartThatEndsWhileTheDaemonCreates leaves no container, though the daemon goes on with what it began.
func TestAStartThatEndsWhileTheDaemonCreates(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	b := between(t, func(r *http.Request) *http.Request {
		cancel()
		return r.WithContext(context.WithoutCancel(r.Context())) // as the daemon does
	})
	_, err := b.Start(ctx, b.spec(t, script2("sleep 600", nil)))
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, b.containers(t))
}

// TestAnEarlierStartKnocks: its agent was killed, its container comes up late, and is removed by the next start. That
// must not take it for its own.
func TestAnEarlierStartKnocks(t *testing.T) {
	t.Parallel()
	var folder string
	b := between(t, func(r *http.Request) *http.Request {
		if dir, err := os.Open(folder); err == nil {
			defer dir.Close()
			if conn, err := net.Dial("unix", fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), handover.Socket)); err == nil {
				_ = conn.Close()
			}
		}
		return r
	})
	spec := b.spec(t, script2("sleep 600", nil))
	folder = filepath.Join(spec.Dirs.State, "boot")
	require.Zero(t, drivertest.Do(t, b.run(t, spec), execution.Spec{Argv: []string{"true"}}).Receipt.ExitCode)
}
