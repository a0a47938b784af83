package server

import (
	"context"
	"io"
	"log/slog"

	"drover/internal/clock"
	"drover/internal/config"
	"drover/internal/id"
	"drover/internal/telemetry"
)

// Run builds an agent and runs it until ctx ends. ready is called with the address of the faces once they are served.
func Run(ctx context.Context, cfg *config.Agent, logs io.Writer, ready func(addr string)) error {
	level, err := telemetry.ParseLevel(cfg.LogLevel)
	if err != nil {
		return err
	}
	var out slog.Handler = slog.NewTextHandler(logs, &slog.HandlerOptions{Level: level})
	if config.True(cfg.LogJSON) {
		out = slog.NewJSONHandler(logs, &slog.HandlerOptions{Level: level})
	}
	ring := telemetry.NewRing(out)
	a, err := New(ctx, cfg, Deps{Log: slog.New(ring), Ring: ring, Clock: clock.Wall{}, IDs: id.Random{}})
	if err != nil {
		return err
	}
	slog.New(ring).Info("serving", "http", a.HTTPAddr(), "rpc", a.RPCAddr(), "data_dir", a.DataDir())
	ready(a.HTTPAddr()) // the listener is open: requests wait until the parts run
	return a.Run(ctx)
}
