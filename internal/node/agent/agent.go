package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/node/allocdir"
	"github.com/drover-project/drover/internal/node/allocrunner"
	"github.com/drover-project/drover/internal/node/diskuse"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/hook"
	"github.com/drover-project/drover/internal/node/identities"
	"github.com/drover-project/drover/internal/node/localstate"
	"github.com/drover-project/drover/internal/node/lookups"
	"github.com/drover-project/drover/internal/node/refill"
	"github.com/drover-project/drover/internal/node/taskrunner"
	"github.com/drover-project/drover/internal/node/volumes"
	"github.com/drover-project/drover/internal/stack"
	"github.com/drover-project/drover/internal/wake"
	"github.com/drover-project/drover/usage"
)

// Agent is a node. Make one with New and Run it; it implements exchange.Workloads.
type Agent struct {
	// Constant.
	cfg       Config
	control   exchange.Controller
	clock     clock.Clock
	log       *slog.Logger
	host      HostMeter
	groups    GroupSweeper
	networks  Networks
	devices   Devices
	clouds    Clouds
	machine   Machine
	identity  Identity
	root      allocdir.Root
	drivers   map[string]driver.Driver
	runnerCfg allocrunner.Config
	pusher    *pusher
	refills   *refill.Pacer
	stops     *stops
	known     chan struct{}   // closed with the first registration
	heard     chan struct{}   // closed when a cloud has answered, or none will
	leaving   context.Context // ends when the node begins to leave
	leave     context.CancelFunc
	back      chan struct{} // closed when the node does not say any more that it is back
	restored  chan struct{} // closed when what the local state knows was begun
	contacted chan struct{} // closed with the first assignment
	again     wake.Signal   // ask for a registration
	collect   wake.Signal   // an allocation ended
	self      self

	node    atomic.Pointer[drover.Node] // changed by amend alone, once Run has described it
	nodeMu  sync.Mutex                  // is held while it is changed
	signers signers
	meta    atomic.Pointer[map[string]*string] // set by people at runtime, as control said last; nil: not heard yet
	sight   Sight
	state   localstate.Store
	samples samples
	disk    *diskuse.Meter
	alive   sync.WaitGroup // allocation runners
	volumes *volumes.Volumes

	mu      sync.Mutex // guards what follows
	allocs  map[string]*entry
	refused map[string]bool // allocations that cannot be run, by id
	life    context.Context // of the allocation runners; nil before Run
}

// entry is an allocation in the agent's table.
type entry struct {
	runner   *allocrunner.Runner
	unlisted bool // control knows that it has ended, or does not want it: it will not be listed again
	removed  bool // its folder is gone
}

// New prepares an agent: it makes the folders, and reads or makes the identity. It starts nothing.
func New(cfg Config, deps Deps) (*Agent, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	a := &Agent{
		cfg: cfg, control: deps.Controller, clock: deps.Clock, log: deps.Log, host: deps.Host, groups: deps.Groups, networks: deps.Networks,
		devices: deps.Devices, clouds: deps.Clouds, machine: deps.Machine,
		root: allocdir.NewRoot(cfg.DataDir), drivers: map[string]driver.Driver{}, known: make(chan struct{}), restored: make(chan struct{}),
		back: make(chan struct{}), heard: make(chan struct{}), contacted: make(chan struct{}),
		again: wake.NewSignal(), collect: wake.NewSignal(), allocs: map[string]*entry{}, refused: map[string]bool{},
		samples: samples{latest: map[string]*usage.TaskResourceUsage{}},
		disk:    diskuse.NewMeter(deps.Clock),
	}
	a.leaving, a.leave = context.WithCancel(context.Background()) //nolint:forbidigo // Leave ends it
	if err := a.place(); err != nil {
		return nil, err
	}
	if cfg.SecretsInMemory {
		a.root = a.root.SecretsInMemory()
	}
	for _, d := range deps.Drivers {
		a.drivers[d.Name()] = d
	}
	if err := a.root.Prepare(); err != nil {
		return nil, err
	}
	if cfg.ShieldFolders {
		if err := a.root.Shield(); err != nil {
			a.log.Warn("set-user-id programs that tasks leave in their folders count on this machine", "error", err)
		}
	}
	if err := a.open(deps); err != nil {
		a.unshield(false)
		return nil, err
	}
	return a, nil
}

// place finds out where allocations have their folders. Those of before another client.alloc_dir stay where they are until they end.
func (a *Agent) place() error {
	var former []string
	if !a.cfg.InMemory {
		err := os.MkdirAll(a.cfg.StateDir, 0o700)
		if err == nil {
			former, err = allocdir.Places(filepath.Join(a.cfg.StateDir, "alloc-dirs"), a.cfg.DataDir, a.cfg.AllocDir)
		}
		if err != nil {
			return err
		}
	}
	if len(former) > 0 {
		a.log.Warn("allocations of before have their folders in former places, where they stay until they are removed",
			"key", "client.alloc_dir", "now", a.cfg.AllocDir, "former", former)
	}
	a.root = a.root.At(a.cfg.AllocDir, former)
	return nil
}

// unshield takes the mount off the allocations' folder. It stays while tasks have files open there, unless force is set.
// A failure is only logged: the next agent finds the mount and goes on with it.
func (a *Agent) unshield(force bool) {
	if !a.cfg.ShieldFolders {
		return
	}
	if err := a.root.Unshield(force); err != nil {
		a.log.Warn("leaving the allocations' folder", "error", err)
	}
}

// open reads what is kept of the node, and makes what works on it.
func (a *Agent) open(deps Deps) (err error) {
	cfg := a.cfg
	if a.identity, err = ReadIdentity(cfg, deps.IDs); err != nil {
		return err
	}
	if a.state, err = openState(cfg, deps); err != nil {
		return err
	}
	if err := a.signers.open(cfg); err != nil {
		return err
	}
	a.volumes = a.openVolumes()
	start, err := countStart(cfg)
	if err != nil {
		return err
	}
	a.pusher = newPusher(deps.Controller, a.identity.ID, start<<startBits, deps.Clock, deps.Log)
	a.refills = refill.New(deps.Clock, runtime.NumCPU())
	a.stops = newStops(deps.Clock, a.refills.Busy)
	a.node.Store(&drover.Node{ID: a.identity.ID, Name: cfg.Name}) // Run looks at the machine
	a.runnerCfg = allocrunner.Config{
		Shared: a.sharedWith(deps), Contacted: a.contacted, Report: a.report, Previous: a.previous, Writers: a.writers,
	}
	if control, ok := deps.Controller.(exchange.Migrations); ok {
		a.runnerCfg.Fetch = func(ctx context.Context, allocID string, w io.Writer) error {
			return control.Fetch(ctx, a.identity.ID, allocID, w)
		}
	}
	return nil
}

// sharedWith makes what all task runners have in common. It needs identity and state, so open calls it last.
func (a *Agent) sharedWith(deps Deps) *taskrunner.Shared {
	var signer hook.Signer
	if control, ok := deps.Controller.(exchange.Identities); ok {
		signer = identities.New(control, a.identity.ID, a.clock)
	}
	a.self.signer, a.self.again = signer, wake.NewSignal()
	settings := hook.Settings{
		Artifacts: a.fetcher(),
		Evaluator: deps.Evaluator, Signer: signer, Clock: a.clock,
		Templates: a.cfg.Templates, TaskAPI: deps.TaskAPI, Devices: deps.Devices,
	}
	if control, ok := deps.Controller.(exchange.Lookups); ok {
		settings.Lookups = lookups.New(control, a.identity.ID, a.cfg.Templates.Retry, a.clock, a.log)
	}
	s := &taskrunner.Shared{
		Node: a.nodeForTasks, Drivers: a.drivers, Clock: a.clock, IDs: deps.IDs, Log: a.log, State: a.state,
		Slots: make(chan struct{}, a.cfg.ParallelStarts), Turn: make(chan struct{}, 1), MaxKillTimeout: a.cfg.MaxKillTimeout,
		Reclaim: reclaimer(a.clock, a.log), Calm: func() bool { return !a.refills.Busy() },
		Hooks:    hook.Standard(settings),
		Settings: settings,
		Networks: deps.Networks, Signer: signer, SignedBy: a.signers.of,
		Terminated: func(alloc *drover.Allocation, task string, exit driver.Exit) {
			a.samples.drop(alloc.ID, task)
			if deps.Terminated != nil {
				deps.Terminated(alloc, task, exit)
			}
		},
	}
	if a.cfg.PublishAllocMetrics {
		s.Publish = a.publisher(deps)
	}
	return s
}

// openState returns the store that remembers tasks: the caller's, none at all, or a bbolt file in the data folder.
func openState(cfg Config, deps Deps) (localstate.Store, error) {
	switch {
	case deps.State != nil:
		return keepOpen{deps.State}, nil
	case cfg.InMemory:
		return localstate.None{}, nil
	}
	return localstate.OpenBolt(filepath.Join(cfg.StateDir, "state.db"), deps.Log, deps.Clock)
}

// keepOpen leaves the closing to the caller who gave the store.
type keepOpen struct{ localstate.Store }

// Close does nothing.
func (keepOpen) Close() error { return nil }

// NodeID returns the node's id.
func (a *Agent) NodeID() string { return a.identity.ID }

// Node returns the node as it was last registered, before Run only its name; it must not be changed.
func (a *Agent) Node() *drover.Node { return a.node.Load() }

// nodeForTasks is the node as jobs see it: with the meta that people set at runtime.
func (a *Agent) nodeForTasks() *drover.Node {
	n, meta := a.node.Load(), a.meta.Load()
	if meta == nil || len(*meta) == 0 {
		return n
	}
	merged := *n
	merged.MergeMeta(n.Meta, *meta)
	return &merged
}

// Run restores what ran, registers, and works until ctx ends. Tasks outlive it, unless Config.StopOnExit. It can be
// called once. Errors: the local state's, and a cloud's without whose answer it shall not go on.
func (a *Agent) Run(ctx context.Context) error {
	ctx, giveUp := context.WithCancel(ctx)
	defer giveUp()
	died, err := a.mark()
	defer func() {
		if err := errors.Join(a.state.Close(), a.unmark()); err != nil {
			a.log.Error("closing the local state", "error", err)
		}
	}()
	if err != nil {
		return err
	}
	if died {
		a.log.Warn("the agent did not end by itself the last time: tasks that it was preparing then are prepared one after the other")
	}
	a.runnerCfg.Shared.Died = died
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	a.mu.Lock()
	a.life = life
	a.mu.Unlock()
	a.node.Store(a.describe(ctx))
	a.lookAtMachine(ctx)
	if err := a.restore(); err != nil {
		return fmt.Errorf("restoring the node's tasks: %w", err)
	}
	a.sweep(ctx)
	close(a.restored)
	var loops, pushing sync.WaitGroup
	loops.Go(func() { a.stayRegistered(ctx) }) // these end with ctx
	loops.Go(func() { a.keepIdentity(ctx) })
	loops.Go(func() { a.comeBack(ctx) })
	loops.Go(func() { a.watchDrivers(ctx) })
	loops.Go(func() { a.watchDevices(ctx) })
	var unknown error
	loops.Go(func() {
		if unknown = a.askClouds(ctx); unknown != nil {
			giveUp()
		}
	})
	loops.Go(func() { a.pull(ctx) })
	loops.Go(func() { a.collectLoop(ctx) })
	loops.Go(func() { a.volumes.Run(ctx, a.offerVolumes) })
	loops.Go(func() { a.stops.run(ctx) })
	pushing.Go(func() { a.pusher.run(life, a.contacted) }) // ends with life, behind the last word of the tasks
	<-ctx.Done()
	loops.Wait()
	if a.cfg.StopOnExit {
		a.stopAll(life)
	} else {
		a.finishStops(life)
	}
	end()
	a.alive.Wait()
	pushing.Wait()
	a.unshield(a.cfg.StopOnExit)
	return unknown
}

// stopAll ends everything, for as long as the configuration allows, then by force.
func (a *Agent) stopAll(life context.Context) {
	ctx, cancel := a.clock.WithTimeout(life, a.cfg.ExitTimeout)
	defer cancel()
	runners := a.runners()
	for _, r := range runners {
		r.Remove(true)
	}
	for _, r := range runners {
		select {
		case <-r.Done():
		case <-ctx.Done():
			a.destroy(life, r)
		}
	}
	a.pusher.flush(life)
}

// stopPatience is how long an agent that ends waits for tasks that are being stopped. What is not stopped then, the next one stops.
const stopPatience = 5 * time.Second

// finishStops waits for the allocations that control wants gone: their tasks would be left without what held them, and with their
// mounts, where no agent starts again.
func (a *Agent) finishStops(life context.Context) {
	ctx, cancel := a.clock.WithTimeout(life, stopPatience)
	defer cancel()
	waited := false
	for _, r := range a.runners() {
		if !r.Stopping() {
			continue
		}
		waited = true
		select {
		case <-r.Done():
		case <-ctx.Done():
		}
	}
	if waited {
		a.pusher.flush(life)
	}
}

// destroy ends by force what is left of an allocation that did not stop in time. Each task has ExitTimeout of its own.
func (a *Agent) destroy(life context.Context, r *allocrunner.Runner) {
	for task, h := range r.Handles() {
		ctx, cancel := a.clock.WithTimeout(life, a.cfg.ExitTimeout)
		if err := h.Destroy(ctx); err != nil {
			a.log.Error("a task could not be destroyed at exit", "task", task, "error", err)
		}
		cancel()
	}
}

// start runs an allocation, once before returns. a.mu is held.
func (a *Agent) start(r *allocrunner.Runner, allocID string, before func(life context.Context)) *entry {
	e := &entry{runner: r}
	a.allocs[allocID] = e
	life := a.life
	a.alive.Go(func() { // ends with the allocation, or with life
		stack.Grow16K()
		before(life)
		r.Run(life)
		a.collect.Send()
	})
	return e
}

// runners returns the runners of all allocations, the ended ones too. Callers may then wait for them without holding mu.
func (a *Agent) runners() []*allocrunner.Runner {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := make([]*allocrunner.Runner, 0, len(a.allocs))
	for _, e := range a.allocs {
		out = append(out, e.runner)
	}
	return out
}

// restorePatience bounds how long a request waits for the agent to find again what ran before its restart.
const restorePatience = 10 * time.Second

// runner finds an allocation. Right after a restart it waits until the tasks were found again: else a request that
// comes early would be told that they are not there. Errors: NotFound.
func (a *Agent) runner(allocID string) (*allocrunner.Runner, error) {
	a.awaitRestored(a.restored)
	r := a.previous(allocID)
	if r == nil {
		return nil, drover.Errorf(drover.NotFound, "allocation %s is not on this node", allocID)
	}
	a.awaitRestored(r.Found())
	return r, nil
}

// awaitRestored waits until happened is closed, for at most restorePatience.
func (a *Agent) awaitRestored(happened <-chan struct{}) {
	select {
	case <-happened:
		return
	default:
	}
	patience := a.clock.NewTimer(restorePatience)
	defer patience.Stop()
	select {
	case <-happened:
	case <-patience.C():
	}
}

// previous returns an allocation's runner, nil if it is not here.
func (a *Agent) previous(allocID string) *allocrunner.Runner {
	a.mu.Lock()
	defer a.mu.Unlock()
	if e := a.allocs[allocID]; e != nil {
		return e.runner
	}
	return nil
}

// report takes an observation of an allocation runner. It does not block, as runners call it in their loops.
func (a *Agent) report(u exchange.AllocUpdate) {
	a.refills.Observe(u.ID, u.ClientStatus)
	a.pusher.add(u)
}

var _ exchange.Workloads = (*Agent)(nil)
