package server

import (
	"context"
	"io"
	"log/slog"
	"os"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/optional"
	"github.com/drover-project/drover/internal/tables"
	"github.com/drover-project/drover/internal/telemetry"
)

// Run builds an agent and runs it until ctx ends. ready is called once its faces are served, with an address at which
// this machine reaches them.
func Run(ctx context.Context, cfg *config.Agent, logs io.Writer, ready func(addr string)) error {
	level, err := telemetry.ParseLevel(cfg.LogLevel)
	if err != nil {
		return err
	}
	if cfg.LogFile != "" {
		f, err := os.OpenFile(cfg.LogFile, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o640)
		if err != nil {
			return drover.Errorf(drover.Invalid, "log_file: %w", err)
		}
		defer f.Close()
		logs = io.MultiWriter(logs, f)
	}
	var out slog.Handler = slog.NewTextHandler(logs, &slog.HandlerOptions{Level: level})
	if optional.Value(cfg.LogJSON) {
		out = slog.NewJSONHandler(logs, &slog.HandlerOptions{Level: level})
	}
	telemetry.PaceGC()
	ring := telemetry.NewRing(out)
	a, err := New(ctx, cfg, Deps{Log: slog.New(ring), Ring: ring, Clock: clock.Wall{}, IDs: id.Random{}})
	if err != nil {
		return err
	}
	if len(cfg.Ignored) > 0 {
		slog.New(ring).Info("these keys of Nomad's have no effect here", "keys", cfg.Ignored)
	}
	slog.New(ring).Info("serving", "http", a.HTTPAddr(), "rpc", a.RPCAddr(), "data_dir", a.DataDir())
	for _, line := range cfg.Exposed() {
		slog.New(ring).Warn("INSECURE, as insecure = true allows: whoever reaches this agent can run programs on its machines, "+
			"or read what goes over the network", "listener", line)
	}
	readyCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends when the node is there, or with the agent
		if a.awaitNode(readyCtx) {
			ready(usable(a.HTTPAddr(), "127.0.0.1"))
		}
	}()
	return a.Run(ctx)
}

// awaitNode waits until the node of this process can be given work, if both planes are in it: what is served before
// that would find no node. It reports whether the agent still runs.
func (a *Agent) awaitNode(ctx context.Context) bool {
	if a.control == nil || a.node == nil || a.control.servers.Clustered() { // there may be no leader for long
		return ctx.Err() == nil
	}
	for {
		changed := a.control.store.Watch(tables.Nodes, "")
		if n := a.control.store.Snapshot().Node(a.node.agent.NodeID()); n != nil && n.Status == drover.NodeStatusReady {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}
