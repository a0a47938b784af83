package machine

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
)

// hasty is a clock on which waits are a thousandth of themselves.
type hasty struct{ clock.Wall }

func (h hasty) NewTimer(d time.Duration) clock.Timer { return h.Wall.NewTimer(d / 1000) }

// TestNotices: the metadata service is asked with a session, as EC2's wants it, and what it says marks the node.
func TestNotices(t *testing.T) {
	t.Parallel()
	var taken atomic.Bool
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPut && r.URL.Path == "/latest/api/token" && r.Header.Get("X-aws-ec2-metadata-token-ttl-seconds") == "21600":
			_, _ = w.Write([]byte("session"))
		case r.Header.Get("X-aws-ec2-metadata-token") != "session":
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path == "/latest/meta-data/spot/instance-action" && taken.Load():
			_, _ = w.Write([]byte(`{"action":"terminate","time":"` + at.Format(time.RFC3339) + `"}`))
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(s.Close)
	c := &control{}
	g := New(Config{Notices: s.URL}, Deps{Controller: c, Clock: hasty{}, Log: slog.New(slog.DiscardHandler), Work: func() int { return 0 }})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = g.Run(ctx) }() // ends with ctx
	t.Cleanup(func() { cancel(); <-done })
	node := &drover.Node{}
	_, err := g.Register(t.Context(), node)
	require.NoError(t, err)
	_, err = g.Heartbeat(t.Context(), "n")
	require.NoError(t, err)
	taken.Store(true)
	require.Eventually(t, func() bool {
		_, err := g.Heartbeat(t.Context(), "n")
		return drover.CodeOf(err) == drover.NotFound
	}, 10*time.Second, time.Millisecond)
	_, err = g.Register(t.Context(), node)
	require.NoError(t, err)
	require.Equal(t, at.Format(time.RFC3339), c.registered.Load().Attributes[AttributeInterrupted])
	require.Empty(t, node.Attributes, "the node itself is not changed")
	_, err = g.Heartbeat(t.Context(), "n")
	require.NoError(t, err, "it is told once")
}
