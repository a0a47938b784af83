package leader

import (
	"context"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/evalbroker"
	"github.com/drover-project/drover/internal/control/planner"
	"github.com/drover-project/drover/internal/control/scheduler"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/control/trigger"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/telemetry"
)

// Log commits commands; *raftlog.Log satisfies it.
type Log interface {
	Propose(ctx context.Context, c command.Command) (index uint64, result any, err error)
}

// Config of a Leader. The zero value of a field means its default.
type Config struct {
	Workers    int      // evaluations under way at once; default 16 for each CPU: most wait for the log
	Schedulers int      // of them computing at once; default the number of CPUs
	Types      []string // of the jobs that they take, until SetSchedulers; nil is all

	HeartbeatTTL   time.Duration // least time between heartbeats that is asked of nodes; default 10 s
	HeartbeatGrace time.Duration // how late a heartbeat may be; default 10 s
	FailoverTTL    time.Duration // how long a new leader waits for a node's first heartbeat, if that is longer; default 0
	HeartbeatRate  float64       // heartbeats a second that the leader wants at most; default 50

	GC     GCConfig
	Broker evalbroker.Config
	Plans  planner.Config
}

// withDefaults replaces what is not positive. Broker and Plans have defaults of their own, where they are used.
func (c Config) withDefaults() Config {
	if c.Workers <= 0 {
		c.Workers = 16 * runtime.NumCPU()
	}
	if c.Schedulers <= 0 {
		c.Schedulers = runtime.NumCPU()
	}
	if c.Types == nil {
		c.Types = schedulerTypes
	}
	if c.HeartbeatTTL <= 0 {
		c.HeartbeatTTL = 10 * time.Second
	}
	if c.HeartbeatGrace <= 0 {
		c.HeartbeatGrace = 10 * time.Second
	}
	if c.HeartbeatRate <= 0 {
		c.HeartbeatRate = 50
	}
	c.GC = c.GC.withDefaults()
	return c
}

// Deps is what a Leader needs. The log comes with Run, because the log's state machine needs the Leader as observer.
type Deps struct {
	Store  *store.Store
	Clock  clock.Clock
	IDs    id.Source // used by several goroutines at once
	Logger *slog.Logger
	// Launch launches a periodic job's child that is due at the time (intake.Intake.LaunchPeriodic).
	Launch func(ctx context.Context, namespace, jobID string, at time.Time) error
	// Schedule answers an evaluation; nil: scheduler.Schedule. The simulation's takes its time.
	Schedule func(scheduler.Input) scheduler.Output
	// Withhold is planner.Deps.Withhold; nil: there are no warm runners.
	Withhold func(ctx context.Context, allocIDs []string) (leases []uint64, giveBack func(settled bool), err error)
	// Samples takes how long workers and the planner take; nil: nobody does.
	Samples *telemetry.Samples
}

// Leader is an fsm.Observer all the time, and works while Run does.
type Leader struct {
	cfg  Config
	deps Deps

	broker     *evalbroker.Shell
	heartbeats *heartbeats
	periodic   *periodic
	crew       *crew
	plans      atomic.Pointer[planner.Planner] // of the newest term

	mu  sync.Mutex // guards log
	log Log        // nil while Run does not
}

// New returns a Leader that does nothing yet.
func New(cfg Config, deps Deps) *Leader {
	cfg = cfg.withDefaults()
	if deps.Schedule == nil {
		deps.Schedule = scheduler.Schedule
	}
	l := &Leader{cfg: cfg, deps: deps, crew: newCrew(min(cfg.Schedulers, MaxSchedulers), cfg.Types, deps.Clock.Now())}
	l.broker = evalbroker.NewShell(cfg.Broker, deps.Clock, l.room, quotas{deps.Store})
	l.heartbeats = newHeartbeats(cfg, deps.Clock)
	l.periodic = newPeriodic()
	return l
}

// Lead runs Run until ctx, which is that of a term of office, ends. While the log refuses the first entry (a full disk) it tries
// again.
func (l *Leader) Lead(ctx context.Context, log Log) {
	for ctx.Err() == nil {
		if err := l.Run(ctx, log); ctx.Err() == nil {
			l.deps.Logger.Warn("cannot lead yet", "error", err)
			clock.Sleep(ctx, l.deps.Clock, retryDelay)
		}
	}
}

// Run leads until ctx ends: leadership was lost, or the server stops. It returns early only when the log refuses the
// first entry.
func (l *Leader) Run(ctx context.Context, log Log) error {
	loops, err := l.Begin(ctx, log)
	if err != nil {
		return err
	}
	defer l.End()
	var wg sync.WaitGroup
	for _, loop := range loops {
		wg.Go(func() { loop(ctx) }) // ends with ctx
	}
	wg.Wait()
	return ctx.Err()
}

// Begin takes the evaluations of the state in and returns the loops of a term of office. Each is to be run until ctx
// ends; End is to be called after the last. Errors: those of the log, which refused the first entry; nothing has begun then.
func (l *Leader) Begin(ctx context.Context, log Log) (loops []func(context.Context), err error) {
	// Once the barrier is applied, the state has all entries of earlier terms.
	began := l.deps.Clock.Now()
	floor, _, err := log.Propose(ctx, &command.Barrier{})
	if err != nil {
		return nil, err
	}
	l.took("nomad.nomad.leader.barrier", began)
	l.setLog(log)
	l.broker.Enable(floor)
	plans := planner.New(l.cfg.Plans, planner.Deps{
		Log: log, State: func() planner.Snapshot { return l.deps.Store.Snapshot() }, Token: l.broker.Outstanding,
		Clock: l.deps.Clock, IDs: l.deps.IDs, Logger: l.deps.Logger, Withhold: l.deps.Withhold,
		Samples: l.deps.Samples,
	})
	l.plans.Store(plans)
	l.restore()
	loops = append(loops, func(ctx context.Context) { _ = plans.Run(ctx) }, func(ctx context.Context) { _ = l.broker.Run(ctx) })
	for _, loop := range []func(context.Context, Log){
		l.cancelNeedless, l.reapFailed, l.watchHeartbeats, l.watchSchedulerConfig, l.runPeriodic, l.collectPeriodically, l.collectUsed,
		l.watchDeployments, l.watchDrains,
	} {
		loops = append(loops, func(ctx context.Context) { loop(ctx, log) })
	}
	for range l.cfg.Workers {
		loops = append(loops, (&worker{Leader: l, plans: plans}).run)
	}
	l.deps.Logger.Info("leading", "index", floor)
	return loops, nil
}

// End forgets what Begin took in.
func (l *Leader) End() {
	l.broker.Disable()
	l.setLog(nil)
}

// setLog sets the log of the term; nil ends it.
func (l *Leader) setLog(log Log) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.log = log
}

// Leading reports whether Run does.
func (l *Leader) Leading() bool { return l.currentLog() != nil }

// currentLog returns the log of the present term, nil while this server does not lead.
func (l *Leader) currentLog() Log {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.log
}

// Stats counts the broker's evaluations.
func (l *Leader) Stats() evalbroker.Stats { return l.broker.Stats() }

// maker makes evaluations with the present time.
func (l *Leader) maker() trigger.Maker {
	return trigger.Maker{IDs: l.deps.IDs, Now: l.deps.Clock.Now().UnixNano()}
}

// room tells what is free on a node.
func (l *Leader) room(nodeID string) (drover.Capacity, bool) {
	s := l.deps.Store.Snapshot()
	n := s.Node(nodeID)
	if !n.Ready() {
		return drover.Capacity{}, false
	}
	return n.Total().Sub(s.Used(nodeID)), true
}
