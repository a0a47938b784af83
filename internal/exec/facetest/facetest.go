package facetest

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exec/exectest"
	"github.com/drover-project/drover/internal/exec/executor"
	"github.com/drover-project/drover/internal/exec/runner"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/id"
)

// World is a face that is served.
type World struct {
	Control    *exectest.Control
	Runners    *runner.Service
	Executions *executor.Executor
	Log        *slog.Logger // discards
	Server     *httptest.Server
}

// Serve serves the face that build makes of a world, with what cfg says of guards and tokens. wrap, if not nil, stands
// before all routes.
func Serve(
	t testing.TB, cfg httpapi.Config, build func(*World) httpapi.Face, wrap func(http.Handler) http.Handler,
) *World {
	t.Helper()
	w := &World{Control: exectest.NewControl(), Log: slog.New(slog.DiscardHandler)}
	w.Runners, _ = exectest.Start(t, w.Control, runner.Config{})
	executions, err := executor.New(executor.Config{}, executor.Deps{
		Runners: w.Runners, Keeping: w.Runners, Clock: clock.Wall{}, IDs: id.Random{}, Log: w.Log,
	})
	require.NoError(t, err)
	w.Executions = executions
	ctx, cancel := context.WithCancel(context.Background())
	var run sync.WaitGroup
	run.Go(func() { _ = executions.Run(ctx) }) // ends with the test
	cfg.Logger, cfg.Clock = w.Log, clock.Wall{}
	handler := httpapi.Handler(cfg, build(w))
	if wrap != nil {
		handler = wrap(handler)
	}
	w.Server = httptest.NewServer(handler)
	t.Cleanup(func() {
		cancel()
		run.Wait()
		w.Server.Client().CloseIdleConnections()
		w.Server.Close()
	})
	return w
}
