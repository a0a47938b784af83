package lessee

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/leases"
	"github.com/drover-project/drover/internal/exec/executor"
	"github.com/drover-project/drover/internal/exec/runner"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/wake"
)

// Life is an execution service under one incarnation.
type Life struct {
	Runners    *runner.Service
	Executions *executor.Executor

	lease    uint64
	ctx      context.Context
	end      context.CancelFunc
	holdings atomic.Int32 // how often runners are withheld, and it is not known what became of them
}

// begins gives the service a lifetime, which ends when run has run it.
func (x *Life) begins() *Life {
	if x != nil {
		x.ctx, x.end = context.WithCancel(context.Background()) //nolint:forbidigo // a lifetime, ended by run
	}
	return x
}

// Intake are the use cases of control that are needed here.
type Intake interface {
	// BeginIncarnation begins an incarnation of the server, and ends the one that it had, former, if there is one.
	BeginIncarnation(ctx context.Context, server string) (incarnation, former uint64, err error)
	// EndIncarnation ends an incarnation. The heir gets the claimed runners. The unclaimed ones are stopped; if returned is set
	// they are leased to the remaining incarnations instead.
	EndIncarnation(ctx context.Context, incarnation, heir uint64, returned bool) error
	// MoveClaimed gives the heir the claimed runners of an incarnation that goes on.
	MoveClaimed(ctx context.Context, incarnation, heir uint64) error
}

// Peers are the other servers. Errors: Unavailable, NotLeader and what they answer.
type Peers interface {
	// Renew tells the leader that the incarnation lives.
	Renew(ctx context.Context, incarnation uint64) error
	// Gone reports whether the server's process has certainly ended.
	Gone(ctx context.Context, server string) bool
	// Withhold and GiveBack are the Lessee's AnswerWithhold and AnswerGiveBack at a server, Wants is AnswerWants at the leader.
	Withhold(ctx context.Context, server, token string, allocIDs []string) error
	GiveBack(ctx context.Context, server, token string) error
	Wants(ctx context.Context, token string) (bool, error)
}

// Config says which server this is.
type Config struct {
	Server  string
	Journal string // runner.Config.JournalPath
}

// Deps of a Lessee.
type Deps struct {
	// Open makes an execution service; the arguments are those of runner.Config and runner.Deps.
	Open func(lease, former uint64, holds func() bool) (*Life, error)
	// Lead calls term whenever this server leads, until ctx ends; nil: it is alone.
	Lead func(ctx context.Context, term func(ctx context.Context))
	// Leads reports whether it leads.
	Leads func() bool
	// Ready, if set, returns when a service can begin.
	Ready func(ctx context.Context) error
	// Lessees are those that the state has; Changed returns a channel that is closed when they change.
	Lessees func() []*cluster.Lessee
	Changed func() <-chan struct{}
	// Shares reports whether the cluster writes leases: it does not while there are servers of an older program. Raised returns a
	// channel that is closed when that may have changed. nil: it does.
	Shares func() bool
	Raised func() <-chan struct{}
	// Unclaimed are the runners that are warm in the state and leased to nobody.
	Unclaimed func() []string
	// Owner is the server that keeps an allocation's runner; "" if none does.
	Owner func(allocID string) (server string)
	// Keeps reports whether claimed runners are leased to the incarnation.
	Keeps func(incarnation uint64) bool
	// Reach returns once this server's state has the index; nil: it always has. Errors: ctx's.
	Reach func(ctx context.Context, index uint64) error
	// Linearize returns once this server's state has all that was committed before the call, and all of former leaders that ever will
	// be; nil: it always has. Errors: Unavailable, NotLeader, ctx's.
	Linearize func(ctx context.Context) error
	Intake    Intake // nil: the runners are another cluster's, which knows no leases
	// Record returns what records the claims and releases of a lease.
	Record func(lease uint64) runner.Intake
	Peers  Peers
	Clock  clock.Clock
	IDs    id.Source
	Log    *slog.Logger
}

// Lessee is this server's execution service.
type Lessee struct {
	cfg     Config
	deps    Deps
	life    atomic.Pointer[Life] // nil while there is none
	changed wake.Broadcast       // life may be another
	until   atomic.Pointer[time.Time]
	terms   atomic.Uint64
	over    atomic.Bool // Run ends: no other service begins

	mu    sync.Mutex          // guards what follows
	heard leases.Watch        // while this server leads
	held  map[string]*holding // by token: what other servers have withheld here
	wants map[string]bool     // tokens of what this server has withheld at others
}

// New returns a Lessee. The Lessee of a server that is alone has its life at once. Errors: those of Open.
func New(cfg Config, deps Deps) (*Lessee, error) {
	l := &Lessee{cfg: cfg, deps: deps, held: map[string]*holding{}, wants: map[string]bool{}}
	if deps.Lead != nil {
		return l, nil
	}
	life, err := deps.Open(0, 0, nil)
	l.life.Store(life.begins())
	return l, err
}

// Run runs the service until ctx ends. Errors: those of the disk, for a server that is alone.
func (l *Lessee) Run(ctx context.Context) error {
	l.over.Store(false)
	told := make(chan struct{})
	untold := context.AfterFunc(ctx, func() { // ends at once
		defer close(told)
		l.over.Store(true)
		l.changed.Send()
	})
	defer func() {
		if !untold() {
			<-told // else it could say so of the next Run
		}
	}()
	if l.deps.Ready != nil {
		if err := l.deps.Ready(ctx); err != nil {
			return err
		}
	}
	switch {
	case l.deps.Lead == nil:
		if err := l.alone(ctx); err != nil {
			return err
		}
		return run(ctx, l.life.Load())
	case l.deps.Intake == nil:
		l.deps.Lead(ctx, func(term context.Context) { l.hold(term, l.beginElsewhere) }) // nobody but the leader may
		return nil
	}
	var watching sync.WaitGroup
	watching.Go(func() { l.deps.Lead(ctx, l.watch) }) // ends with ctx
	if l.deps.Shares != nil {
		l.unshared(ctx)
	}
	l.hold(ctx, l.begin)
	watching.Wait()
	return nil
}

// alone ends all leases, for a server that was one of several and is alone now.
func (l *Lessee) alone(ctx context.Context) error {
	if l.deps.Intake == nil {
		return nil
	}
	for i, other := range l.deps.Lessees() {
		if i == 0 {
			if err := runner.Settle(ctx, l.cfg.Journal, l.deps.Record); err != nil {
				return err
			}
		}
		if err := l.deps.Intake.EndIncarnation(ctx, other.Incarnation, 0, false); err != nil {
			return err
		}
	}
	return nil
}

// run runs a life until ctx ends or one of its services fails.
func run(ctx context.Context, life *Life) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer life.end()
	failed := make(chan error, 1)
	go func() { // ends with ctx, or with the files' error
		err := life.Executions.Run(ctx)
		cancel()
		failed <- err
	}()
	err := life.Runners.Run(ctx)
	cancel()
	if other := <-failed; err == nil {
		err = other
	}
	return err
}

// retry is how long a server waits that could not begin.
const retry = time.Second

// beginner begins the lease that a service runs under. With lease 0 there is one service in the cluster, that of the leader.
type beginner func(ctx context.Context) (lease, former uint64, err error)

// hold runs the service under one incarnation after another until ctx ends.
func (l *Lessee) hold(ctx context.Context, begin beginner) {
	for ctx.Err() == nil {
		if err := l.live(ctx, begin); err != nil && ctx.Err() == nil {
			level := slog.LevelWarn
			if drover.CodeOf(err) == drover.NotLeader { // the cluster is being formed, or nobody leads
				level = slog.LevelDebug
			}
			l.deps.Log.Log(ctx, level, "the execution service cannot begin yet", "error", err)
			clock.Sleep(ctx, l.deps.Clock, retry)
		}
	}
}

// live begins an incarnation and runs the service under it until the incarnation or ctx ends.
func (l *Lessee) live(ctx context.Context, begin beginner) error {
	lease, former, err := begin(ctx)
	if err != nil {
		return err
	}
	holds := l.holds
	if lease == 0 {
		holds = l.deps.Leads
	}
	life, err := l.deps.Open(lease, former, holds)
	if err != nil {
		return err
	}
	life.begins().lease = lease
	l.terms.Add(1)
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	var loops sync.WaitGroup
	if lease != 0 {
		loops.Go(func() { l.renew(inner, lease) }) // ends with inner
		loops.Go(func() {                          // ends with inner, which it ends with the incarnation
			l.await(inner, func() bool { return !l.lives(lease) })
			cancel()
		})
	}
	l.publish(life)
	err = run(inner, life)
	l.publish(nil)
	cancel()
	loops.Wait()
	if lease != 0 && l.lives(lease) && life.Runners.Recorded() && life.holdings.Load() == 0 {
		l.leave(ctx, lease)
	}
	return err
}

// lives reports whether the state has the incarnation.
func (l *Lessee) lives(lease uint64) bool {
	return slices.ContainsFunc(l.deps.Lessees(), func(o *cluster.Lessee) bool { return o.Incarnation == lease })
}

// begin records what stands in the journal, begins an incarnation and returns it, and the server's former one. The leader
// begins first: before there were leases it had all runners, and those that nobody was leased go to the first incarnation.
func (l *Lessee) begin(ctx context.Context) (lease, former uint64, err error) {
	for left := firstWait; left > 0 && len(l.deps.Lessees()) == 0 && !l.deps.Leads() && ctx.Err() == nil; left -= firstLook {
		clock.Await(ctx, l.deps.Clock, firstLook, l.deps.Changed())
	}
	if err := runner.Settle(ctx, l.cfg.Journal, l.deps.Record); err != nil {
		return 0, 0, err
	}
	return l.deps.Intake.BeginIncarnation(ctx, l.cfg.Server)
}

// How long a server waits for the leader to begin, and how often it looks whether it leads itself.
const (
	firstWait = 3 * time.Second
	firstLook = 100 * time.Millisecond
)

// beginElsewhere begins nothing: the runners are another cluster's.
func (l *Lessee) beginElsewhere(context.Context) (lease, former uint64, err error) { return 0, 0, nil }

// leaving bounds how long a server that stops tries to give back what it holds.
const leaving = 2 * time.Second

// leave gives the other servers the warm runners, none of which was handed out or is withheld, and the claimed ones. If there are no
// others, all stays as it is until this server comes back.
func (l *Lessee) leave(ctx context.Context, lease uint64) {
	if len(l.deps.Lessees()) < 2 {
		return
	}
	ctx, cancel := l.deps.Clock.WithTimeout(context.WithoutCancel(ctx), leaving)
	defer cancel()
	if err := l.deps.Intake.EndIncarnation(ctx, lease, 0, true); err != nil {
		l.deps.Log.Warn("giving warm runners back", "error", err)
	}
}

// await waits until enough says so of the lessees, or ctx ends.
func (l *Lessee) await(ctx context.Context, enough func() bool) {
	for {
		changed := l.deps.Changed()
		if enough() {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// publish makes the life that of the faces.
func (l *Lessee) publish(life *Life) {
	l.life.Store(life)
	l.changed.Send()
}

// Terms counts the services that there were, and how often this server began to lead. It has changed whenever another server
// may have led in between.
func (l *Lessee) Terms() uint64 { return l.terms.Load() }

// patience is how long a request waits for the service to begin.
const patience = 5 * time.Second

// now returns the service, which may begin a moment later. Errors: NotLeader: another server has it; ctx's.
func (l *Lessee) now(ctx context.Context) (*Life, error) {
	if life := l.life.Load(); life != nil {
		return life, nil
	}
	return l.within(ctx, patience, func(*Life) bool { return true })
}

// able is now, once the service may hand out. A service that has just begun has not heard of the leader yet, and neither has
// one whose leader has just gone.
func (l *Lessee) able(ctx context.Context, patience time.Duration) (*Life, error) {
	may := func(life *Life) bool { return life.lease == 0 || l.holds() }
	if life := l.life.Load(); life != nil && may(life) {
		return life, nil
	}
	return l.within(ctx, patience, may)
}

// within waits for a service that is good. Errors: those of now.
func (l *Lessee) within(ctx context.Context, patience time.Duration, good func(*Life) bool) (*Life, error) {
	timer := l.deps.Clock.NewTimer(patience)
	defer timer.Stop()
	for {
		changed := l.changed.C()
		if life := l.life.Load(); life != nil && good(life) {
			return life, nil
		}
		if l.over.Load() {
			return nil, drover.Errorf(drover.NotLeader, "this server stops: another keeps its runners")
		}
		select {
		case <-changed:
		case <-timer.C():
			return nil, drover.Errorf(drover.NotLeader, "No cluster leader")
		case <-ctx.Done():
			return nil, drover.Errorf(drover.Canceled, "waiting for the execution service: %w", context.Cause(ctx))
		}
	}
}
