package native_test

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/client"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/native"
)

// TestADrainIsPlanned: the question reaches who plans, and what is of jobs that the caller may not read is only counted.
func TestADrainIsPlanned(t *testing.T) {
	t.Parallel()
	var asked drover.DrainSpec
	face := native.New(native.Config{}, native.Deps{
		PlanDrain: func(_ context.Context, id string, spec drover.DrainSpec) (drover.DrainPlan, error) {
			if id != "n" {
				return drover.DrainPlan{}, drover.Errorf(drover.NotFound, "node %q not found", id)
			}
			asked = spec
			return drover.DrainPlan{NodeID: id, Moves: []drover.DrainMove{{AllocID: "a", Namespace: "team", Fate: drover.DrainMoves}}}, nil
		},
		Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler),
	})
	serve := func(r httpapi.Resolver) *client.Client {
		h := httpapi.Handler(httpapi.Config{Logger: slog.New(slog.DiscardHandler), Clock: clock.Wall{}, Resolver: r}, face)
		server := httptest.NewServer(described(t, h))
		t.Cleanup(server.Close)
		c, err := client.New(server.URL, client.WithToken("tenant"))
		require.NoError(t, err)
		return c
	}
	plan, err := serve(readers{}).PlanDrain(t.Context(), "n", drover.DrainSpec{})
	require.NoError(t, err)
	require.Empty(t, plan.Moves, "it may read nodes, and no jobs")
	require.Equal(t, 1, plan.Hidden)
	everybody := serve(nil)
	plan, err = everybody.PlanDrain(t.Context(), "n", drover.DrainSpec{IgnoreSystemJobs: true, MoveBatch: true})
	require.NoError(t, err)
	require.Len(t, plan.Moves, 1)
	require.Zero(t, plan.Hidden)
	require.Equal(t, drover.DrainSpec{IgnoreSystemJobs: true, MoveBatch: true}, asked)
	for id, code := range map[string]drover.Code{"": drover.Invalid, "other": drover.NotFound} {
		_, err = everybody.PlanDrain(t.Context(), id, drover.DrainSpec{})
		require.Equal(t, code, drover.CodeOf(err), id)
	}
}
