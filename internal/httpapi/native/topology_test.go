package native_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/client"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/native"
)

// TestAnUnchangedTopologyCostsLittle: who has it is told so, and who has its layout is told what may have changed.
func TestAnUnchangedTopologyCostsLittle(t *testing.T) {
	t.Parallel()
	now := &cluster.Topology{
		Index: 7, Layout: "x", IDs: []string{"a"}, Names: []string{"b"}, Pools: []string{"c"}, Pool: []int{0}, States: "r", CPU: []int{1},
		Memory: []int{2}, Allocations: []int{3},
	}
	face := native.New(native.Config{}, native.Deps{
		Topology: func(context.Context) (*cluster.Topology, error) { return now, nil }, Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler),
	})
	h := httpapi.Handler(httpapi.Config{Logger: slog.New(slog.DiscardHandler), Clock: clock.Wall{}, Resolver: readers{}}, face)
	server := httptest.NewServer(described(t, h))
	t.Cleanup(server.Close)
	c, err := client.New(server.URL, client.WithToken("tenant"))
	require.NoError(t, err)
	got, err := c.Topology(t.Context())
	require.NoError(t, err)
	require.Equal(t, *now, got)

	ask := func(query, tag string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "http://localhost:4646/v1/topology"+query, http.NoBody)
		r.Header.Set("X-Drover-Token", "tenant")
		r.Header.Set("If-None-Match", tag)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	w := ask("", "")
	tag := w.Header().Get("Etag")
	require.Equal(t, http.StatusNotModified, ask("", tag).Code)
	require.Equal(t, http.StatusNotModified, ask("?layout=x", tag).Code)
	require.NotContains(t, ask("?layout=x", "").Body.String(), `"ids"`)
	require.Contains(t, ask("?layout=y", "").Body.String(), `"ids"`)
	other := *now
	other.Index = 8
	now = &other
	require.Equal(t, http.StatusOK, ask("?layout=x", tag).Code)

	c, err = client.New(server.URL, client.WithToken("wrong"))
	require.NoError(t, err)
	_, err = c.Topology(t.Context())
	require.Equal(t, drover.Forbidden, drover.CodeOf(err))
	face.Topology = nil
	require.Equal(t, http.StatusNotImplemented, ask("", "").Code)
}

// TestRightsTellTheCapabilitiesOfANamespace, and of some namespace, whichever.
func TestRightsTellTheCapabilitiesOfANamespace(t *testing.T) {
	t.Parallel()
	face := native.New(native.Config{}, native.Deps{Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler)})
	ask := func(resolver httpapi.Resolver, namespace string) (l acl.Levels) {
		h := httpapi.Handler(httpapi.Config{Logger: slog.New(slog.DiscardHandler), Clock: clock.Wall{}, Resolver: resolver}, face)
		r := httptest.NewRequestWithContext(t.Context(), "GET", "http://localhost:4646/v1/rights?namespace="+namespace, http.NoBody)
		r.Header.Set("X-Drover-Token", "tenant")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		decode(t, w.Body.Bytes(), &l)
		return l
	}
	l := ask(readers{}, "team")
	require.Equal(t, []string{"read-runner"}, l.Capabilities)
	require.True(t, l.May("read-runner") && !l.May("submit-job"))
	require.Equal(t, []string{"read-runner"}, ask(readers{}, "*").Capabilities)
	l = ask(readers{}, "default")
	require.Empty(t, l.Capabilities)
	require.True(t, l.MaySomewhere("read-runner") && !l.MaySomewhere("read-job"))
	require.Equal(t, "default", l.Namespace)
	l = ask(readers{}, "")
	require.Empty(t, l.Namespace)
	l = ask(nil, "team")
	require.True(t, l.Management && l.May("submit-job"))
	require.Empty(t, l.Capabilities)
}

func decode(t *testing.T, text []byte, to any) {
	t.Helper()
	require.NoError(t, json.Unmarshal(text, to))
}
