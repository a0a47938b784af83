package native_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
)

func TestPutWaitsForThePool(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	env := execution.Environment{ID: "e", Image: "host", PoolSize: 2}
	_, full, err := w.PutEnvironmentAndWait(t.Context(), env, time.Minute)
	require.NoError(t, err)
	require.True(t, full)
	pool, err := w.AwaitPool(t.Context(), "e", time.Minute)
	require.NoError(t, err)
	require.Equal(t, 2, pool.Warm)
	w.control.StopRefill()
	env.PoolSize = 3
	_, full, err = w.PutEnvironmentAndWait(t.Context(), env, time.Millisecond)
	require.NoError(t, err)
	require.False(t, full)
}

func TestRunnersByLabel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.claim()
	r, err := w.Claim(t.Context(), execution.ClaimRequest{
		Environment: "e", Wait: time.Minute, Labels: map[string]string{"user": "7", "x": "=y"},
	})
	require.NoError(t, err)
	for _, labels := range [][]string{{"user=7"}, {"user=7", "x==y"}} {
		list, err := w.Runners(t.Context(), "e", labels...)
		require.NoError(t, err)
		require.Len(t, list, 1)
		require.Equal(t, r.ID, list[0].ID)
	}
	list, err := w.Runners(t.Context(), "", "user=8")
	require.NoError(t, err)
	require.Empty(t, list)
	_, err = w.Runners(t.Context(), "", "user")
	require.Equal(t, drover.Invalid, code(err))
}
