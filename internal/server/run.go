package server

import (
	"context"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/logsink"
	"github.com/drover-project/drover/internal/server/addresses"
	"github.com/drover-project/drover/internal/tables"
	"github.com/drover-project/drover/internal/telemetry"
)

// Run builds an agent and runs it until ctx ends. ready is called once its faces are served, with an address at which
// this machine reaches them.
// At SIGHUP the configuration is read again with again.
func Run(
	ctx context.Context, cfg *config.Agent, again func() (*config.Agent, error), logs io.Writer, ready func(addr string),
) error {
	first, err := telemetry.ParseLevel(cfg.LogLevel)
	if err != nil {
		return err
	}
	level := &slog.LevelVar{}
	level.Set(first)
	sinks := cfg.LogSinks()
	sinks.Level = level
	places, err := logsink.Open(sinks, logs, clock.Wall{})
	if err != nil {
		return err
	}
	defer places.Close()
	telemetry.PaceGC()
	ring := telemetry.NewRing(places.Handler())
	a, err := New(ctx, cfg, Deps{
		Log: slog.New(ring), Ring: ring, Clock: clock.Wall{}, IDs: id.Random{}, Again: again, Level: level, Reopen: places.Reopen,
	})
	if err != nil {
		return err
	}
	if err := a.samples.Libraries(); err != nil {
		return err
	}
	if len(cfg.Ignored) > 0 {
		slog.New(ring).Warn("these keys of Nomad's have no effect here; drover config validate says why", "keys", cfg.Ignored)
	}
	slog.New(ring).Info("serving", "http", a.HTTPAddr(), "rpc", a.RPCAddr(), "data_dir", a.DataDir())
	for _, line := range cfg.Exposed() {
		slog.New(ring).Warn("INSECURE, as insecure = true allows: whoever reaches this agent can run programs on its machines, "+
			"or read what goes over the network", "listener", line)
	}
	readyCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	hangUps := make(chan os.Signal, 1)
	signal.Notify(hangUps, syscall.SIGHUP)
	defer signal.Stop(hangUps)
	go func() { // ends with the agent
		for readyCtx.Err() == nil {
			select {
			case <-hangUps:
				_ = a.Reload() // it was logged
			case <-readyCtx.Done():
			}
		}
	}()
	go func() { // ends when the node is there, or with the agent
		if a.awaitNode(readyCtx) {
			ready(addresses.Usable(a.HTTPAddr(), "127.0.0.1"))
		}
	}()
	return a.Run(ctx)
}

// Reload reads the configuration again and takes up certificates, the log's level and headers. On an error all stays as it was. The
// log goes on in the file that is at log_file now, which somebody may have renamed.
// Errors: Invalid; NotImplemented if there is nothing to read.
func (a *Agent) Reload() error {
	if reopen := a.deps.Reopen; reopen != nil {
		if err := reopen(); err != nil {
			a.deps.Log.Error("the log goes on in the former file", "key", "log_file", "error", err)
		}
	}
	if err := a.live.Reload(); err != nil {
		a.deps.Log.Error("the configuration cannot be used: the former one stays in force", "error", err)
		return err
	}
	a.deps.Log.Info("took up the configuration again: certificates, log_level and http_api_response_headers")
	return nil
}

// awaitNode waits until the node of this process can be given work, if both planes are in it: what is served before
// that would find no node. It reports whether the agent still runs.
func (a *Agent) awaitNode(ctx context.Context) bool {
	if a.control == nil || a.node == nil || a.control.servers.Clustered() { // there may be no leader for long
		return ctx.Err() == nil
	}
	return a.awaitOwnNode(ctx, func(n *drover.Node) bool { return n.Status == drover.NodeStatusReady })
}

// awaitOwnNode waits until this server's state has the node of this process, as it should be. It reports whether the agent still runs.
func (a *Agent) awaitOwnNode(ctx context.Context, is func(*drover.Node) bool) bool {
	for {
		changed := a.control.store.Watch(tables.Nodes, "")
		if n := a.control.store.Snapshot().Node(a.node.agent.NodeID()); n != nil && is(n) {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}
