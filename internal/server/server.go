// Package server is the composition root: it joins the planes into an agent, and says in which order they start and
// stop. server.go is the table of contents.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/fleet/gate"
	"github.com/drover-project/drover/internal/flock"
	"github.com/drover-project/drover/internal/httpapi/nomad"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/lifecycle"
	"github.com/drover-project/drover/internal/link"
	"github.com/drover-project/drover/internal/node/fingerprint"
	"github.com/drover-project/drover/internal/telemetry"
)

// Deps is what an Agent needs of its process.
type Deps struct {
	Log   *slog.Logger
	Ring  *telemetry.Ring // the handler that Log writes through, for /v1/agent/monitor; may be nil
	Clock clock.Clock
	IDs   id.Source
}

// Agent is a process's worth of Drover: control plane, node, or both, and the faces.
type Agent struct {
	cfg     *config.Agent
	deps    Deps
	dataDir string
	lock    *os.File
	metrics *telemetry.Metrics
	started time.Time

	control *control // nil without server
	node    *node    // nil without client
	exec    *executionService
	fleet   *fleetPlane // nil without server
	texts   evaluators
	remote  *link.Nodes

	http net.Listener
	rpc  net.Listener
	told *gate.Announcement // of where rpc is, to nodes of the same user; nil if there is nothing to tell
}

// New builds an agent from a valid configuration: it takes the data folder, opens the log and the listeners, but
// serves nothing yet. Errors: Conflict when another agent has the data folder; Invalid; Unavailable for a port in use.
func New(ctx context.Context, cfg *config.Agent, deps Deps) (a *Agent, err error) {
	a = &Agent{cfg: cfg, deps: deps, metrics: telemetry.NewMetrics(deps.Clock), started: deps.Clock.Now(), remote: link.NewNodes()}
	defer func() {
		if err != nil {
			a.close()
		}
	}()
	a.texts = a.openEvaluators(templateLimits, jobFileLimits)
	for _, kind := range []string{"http", "rpc"} {
		if _, err = tlsFor(cfg.TLS, kind); err != nil {
			return a, err
		}
	}
	if _, err = a.pageGuard(); err != nil {
		return a, err
	}
	if err = a.takeDataDir(ctx); err != nil {
		return a, err
	}
	if a.http, err = listen(ctx, cfg.HTTPAddress(), "ports.http"); err != nil {
		return a, err
	}
	if config.True(cfg.Server.Enabled) {
		if a.control, err = a.openControl(ctx); err != nil {
			return a, err
		}
		if cfg.AwaitsNodes() {
			if a.rpc, err = listen(ctx, cfg.RPCAddress(), "ports.rpc"); err != nil {
				return a, err
			}
			a.tellNodes()
		}
	}
	if err = a.enroll(ctx); err != nil {
		return a, err
	}
	if config.True(cfg.Client.Enabled) {
		if a.node, err = a.openNode(ctx); err != nil {
			return a, err
		}
	}
	if a.control != nil {
		a.metrics.Source(nomad.StateMetrics(nomadState{a.control.store}))
		if a.exec, err = a.openExecution(); err != nil {
			return a, err
		}
		if a.fleet, err = a.openFleet(); err != nil {
			return a, err
		}
	}
	return a, nil
}

// HTTPAddr is where the faces are served.
func (a *Agent) HTTPAddr() string { return a.http.Addr().String() }

// advertised is what others are told of where the faces are.
func (a *Agent) advertised() string {
	return a.cfg.AdvertisedHTTP(a.HTTPAddr(), fingerprint.Probe(a.dataDir).IP)
}

// RPCAddr is where nodes dial; "" if nothing listens for them.
func (a *Agent) RPCAddr() string {
	if a.rpc == nil {
		return ""
	}
	return a.rpc.Addr().String()
}

// DataDir is where the agent keeps what it has; a temporary folder with -dev.
func (a *Agent) DataDir() string { return a.dataDir }

// Run serves until ctx ends or a part fails, then stops: the faces first, the log last.
func (a *Agent) Run(ctx context.Context) error {
	defer a.close()
	var g lifecycle.Group
	g.Ring(a.texts.part(a))
	if a.control != nil {
		g.Ring(a.control.logPart())
		g.Ring(a.control.parts()...)
		if a.rpc != nil {
			g.Ring(a.rpcPart())
		}
	}
	if a.node != nil {
		g.Ring(a.node.parts()...)
	}
	if a.exec != nil {
		g.Ring(a.exec.parts()...)
	}
	if a.fleet != nil {
		g.Ring(a.fleet.parts()...)
	}
	g.Ring(a.httpPart())
	return g.Run(ctx)
}

// takeDataDir makes the data folder and locks it. With -dev it is a temporary one.
func (a *Agent) takeDataDir(ctx context.Context) error {
	a.dataDir = a.cfg.DataDir
	if a.cfg.Dev && a.dataDir == "" {
		dir, err := os.MkdirTemp("", "drover-dev-")
		if err != nil {
			return fmt.Errorf("making a temporary data folder: %w", err)
		}
		a.dataDir = dir
	}
	abs, err := filepath.Abs(a.dataDir)
	if err != nil {
		return drover.Errorf(drover.Invalid, "data_dir: %w", err)
	}
	a.dataDir = abs
	if err := os.MkdirAll(abs, 0o711); err != nil { // sandboxes' unprivileged ids must pass through
		return drover.Errorf(drover.Invalid, "data_dir: %w", err)
	}
	if err := os.Chmod(abs, 0o711); err != nil {
		return drover.Errorf(drover.Invalid, "data_dir: %w", err)
	}
	a.lock, err = os.OpenFile(filepath.Join(abs, "agent.lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return drover.Errorf(drover.Invalid, "data_dir: %w", err)
	}
	if !a.lockDataDir(ctx) {
		return drover.Errorf(drover.Conflict, "data_dir: %s is in use by another agent: stop it, or give this one its own data_dir", abs)
	}
	return nil
}

// A process that an agent was just starting when it was killed has the agent's locks and sockets until its own program
// runs: an agent that starts meanwhile waits, and longer where it can see that who had the lock is dead.
const (
	inheritedWait  = time.Second
	inheritedLimit = 30 * time.Second
	inheritedLook  = 5 * time.Millisecond
)

// lockDataDir takes the lock and leaves this process's number in its file.
func (a *Agent) lockDataDir(ctx context.Context) bool {
	begin := a.deps.Clock.Now()
	for !flock.TryExclusive(a.lock) {
		waited := a.deps.Clock.Now().Sub(begin)
		if waited > inheritedLimit || waited > inheritedWait && !ownerIsDead(a.lock) || !clock.Sleep(ctx, a.deps.Clock, inheritedLook) {
			return false
		}
	}
	_ = a.lock.Truncate(0) // without its number, who comes after a kill waits for a second only
	_, _ = a.lock.WriteAt([]byte(strconv.Itoa(os.Getpid())), 0)
	return true
}

// ownerIsDead reports whether the lock's file names a process that is no more.
func ownerIsDead(lock *os.File) bool {
	text := make([]byte, 20)
	n, _ := lock.ReadAt(text, 0)
	pid, err := strconv.Atoi(string(text[:n]))
	return err == nil && pid > 0 && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}

func (a *Agent) close() {
	a.told.Close()
	for _, l := range []net.Listener{a.http, a.rpc} {
		if l != nil {
			_ = l.Close()
		}
	}
	if a.control != nil {
		a.control.close()
	}
	if a.lock != nil {
		_ = flock.Close(a.lock)
	}
	if a.cfg.Dev && a.cfg.DataDir == "" && a.dataDir != "" {
		if err := os.RemoveAll(a.dataDir); err != nil {
			a.deps.Log.Warn("removing the temporary data folder", "error", err)
		}
	}
}

func listen(ctx context.Context, address, key string) (net.Listener, error) {
	var lc net.ListenConfig
	clk := clock.Wall{}
	begin := clk.Now()
	l, err := lc.Listen(ctx, "tcp", address)
	for errors.Is(err, syscall.EADDRINUSE) && clk.Now().Sub(begin) < inheritedWait && clock.Sleep(ctx, clk, inheritedLook) {
		l, err = lc.Listen(ctx, "tcp", address)
	}
	if errors.Is(err, syscall.EADDRINUSE) {
		flag := "-" + strings.TrimPrefix(key, "ports.") + "-port"
		return nil, drover.Errorf(drover.Unavailable, "%s: %w: perhaps by another agent; %s or the key chooses another port, 0 a free one", key, err, flag)
	}
	if err != nil {
		return nil, drover.Errorf(drover.Unavailable, "%s: %w", key, err)
	}
	return l, nil
}

func port(addr net.Addr) uint16 {
	_, text, err := net.SplitHostPort(addr.String())
	if err != nil {
		return 0
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return 0
	}
	return uint16(n)
}
