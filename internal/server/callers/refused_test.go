package callers

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/node/taskapi"
	"github.com/drover-project/drover/internal/server/auditing"
	"github.com/drover-project/drover/internal/telemetry"
)

// Refusals where no face is are recorded with who it was and why, and without the token; what is answered is not.
func TestRefusalsAreRecorded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := audit.Deps{Clock: clock.Wall{}, IDs: id.Random{}, Log: slog.New(slog.DiscardHandler)}
	sink, err := audit.Open(t.Context(), audit.Place{
		Name: "audit", Folder: dir, File: &audit.File{Path: filepath.Join(dir, "audit.log")}, Node: "n",
	}, d)
	require.NoError(t, err)
	log := audit.New(audit.Config{Node: "n"}, d, sink)
	c := Counted{Samples: telemetry.NewMetrics(clock.Wall{}).Samples(), Refusals: auditing.Refusals{Log: log}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = log.Run(ctx) }() // ends with cancel
	answers := map[string]func(http.ResponseWriter){
		"/refused": func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"code":"unauthenticated","message":"wrong join token"}`)
		},
		"/often": func(w http.ResponseWriter) { http.Error(w, "too many calls", http.StatusTooManyRequests) },
		"/fine":  func(w http.ResponseWriter) { _, _ = io.WriteString(w, "what it asked for") },
		"/none":  func(w http.ResponseWriter) { http.Error(w, "absent", http.StatusNotFound) },
	}
	h := c.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answers[r.URL.Path](w) }))
	for path := range answers {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, nil)
		r.RemoteAddr = "192.0.2.1:5"
		r.Header.Set("Drover-Node", "n1")
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	c.Refusals.Revoked(&net.TCPAddr{IP: net.IPv4(192, 0, 2, 2), Port: 6}, &cluster.Revocation{ID: "node:n2", Reason: "stolen"})
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/var/one-task-of-many", nil)
	r.Header.Set("X-Nomad-Token", "one-task-of-many")
	c.Refusals.Task(taskapi.Task{AllocID: "a1"}, r, http.StatusForbidden, "no such token")
	cancel()
	<-done
	log.Close()
	text, err := os.ReadFile(filepath.Join(dir, "audit.log"))
	require.NoError(t, err)
	for _, want := range []string{
		`"endpoint":"/refused","route":"rpc","object":"n1"`, `"reason":"wrong join token"`, `"status_code":401`, `"remote_address":"192.0.2.1:5"`,
		`"endpoint":"/often"`, `"reason":"too many calls"`, `"route":"connection","object":"node:n2"`, `"endpoint":"/v1/var/<token>"`,
	} {
		require.Contains(t, string(text), want)
	}
	for _, not := range []string{"/fine", "what it asked for", "/none", "one-task-of-many"} {
		require.NotContains(t, string(text), not)
	}
	none := Counted{}
	none.Handler(h).ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/fine", nil))
}
