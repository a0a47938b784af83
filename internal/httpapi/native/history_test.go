package native_test

import (
	"log/slog"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/native"
	"github.com/drover-project/drover/internal/telemetry"
)

// TestHistoryIsOfWhatOneMayRead: tenants see their own pools, by id and by key, and nothing of others, not even that they are there.
func TestHistoryIsOfWhatOneMayRead(t *testing.T) {
	t.Parallel()
	kept := telemetry.NewHistory(clock.Wall{})
	kept.Sample([]execution.PoolStatus{
		{Environment: "e", Namespace: "a", Warm: 1}, {Environment: "e", Namespace: "b", Warm: 2}, {Environment: "e"},
	})
	serve := func(d native.Deps) string {
		d.Clock, d.Log = clock.Wall{}, slog.New(slog.DiscardHandler)
		cfg := httpapi.Config{Logger: d.Log, Clock: d.Clock, Resolver: writers{t}}
		s := httptest.NewServer(httpapi.Handler(cfg, native.New(native.Config{}, d)))
		t.Cleanup(s.Close)
		return s.URL
	}
	address := serve(native.Deps{History: kept})
	names := func(token, namespace, only string) (list []string) {
		h, err := plainAs(t, address, token).In(namespace).History(t.Context(), only, time.Minute, 0)
		require.NoError(t, err)
		for _, p := range h.Pools {
			list = append(list, execution.Key(p.Namespace, p.Environment))
		}
		return list
	}
	require.Equal(t, []string{"a~e"}, names("a", "*", ""))
	require.Equal(t, []string{"a~e"}, names("a", "a", "e"))
	require.Equal(t, []string{"a~e"}, names("a", "", "a~e"))
	require.Empty(t, names("a", "", "b~e"))
	require.Empty(t, names("a", "b", "e"))
	require.Empty(t, names("a", "", ""))
	_, err := plainAs(t, address, "a").History(t.Context(), "", time.Second, 0)
	require.Equal(t, drover.Invalid, code(err))
	_, err = plainAs(t, serve(native.Deps{}), "a").History(t.Context(), "", time.Hour, 0)
	require.Equal(t, drover.NotImplemented, code(err))
}
