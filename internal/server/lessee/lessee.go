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
	"github.com/drover-project/drover/internal/exec/executor"
	"github.com/drover-project/drover/internal/exec/runner"
	"github.com/drover-project/drover/internal/wake"
)

// Life is an execution service under one incarnation.
type Life struct {
	Runners    *runner.Service
	Executions *executor.Service
	lease      uint64
}

// Intake are the use cases of control that are needed here.
type Intake interface {
	// BeginIncarnation begins one of the server, and ends its former, if it has one.
	BeginIncarnation(ctx context.Context, server string) (incarnation, former uint64, err error)
	// EndIncarnation ends one. The heir gets the claimed runners; the others are stopped, unless they are returned: then they go to
	// who is there.
	EndIncarnation(ctx context.Context, incarnation, heir uint64, returned bool) error
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
	Intake  Intake // nil: the runners are another cluster's, which knows no leases
	// Record is what records what was done under a lease.
	Record func(lease uint64) runner.Intake
	Clock  clock.Clock
	Log    *slog.Logger
}

// Lessee is this server's execution service.
type Lessee struct {
	cfg     Config
	deps    Deps
	life    atomic.Pointer[Life] // nil while there is none
	changed wake.Broadcast       // life may be another
	until   atomic.Pointer[time.Time]
}

// New returns a Lessee. That of a server which is alone has its life at once. Errors: those of Open.
func New(cfg Config, deps Deps) (*Lessee, error) {
	l := &Lessee{cfg: cfg, deps: deps}
	if deps.Lead != nil {
		return l, nil
	}
	life, err := deps.Open(0, 0, nil)
	l.life.Store(life)
	return l, err
}

// Run runs the service until ctx ends, or as often as this server leads. Errors: those of the files, of a server that is alone.
func (l *Lessee) Run(ctx context.Context) error {
	if l.deps.Ready != nil {
		if err := l.deps.Ready(ctx); err != nil {
			return err
		}
	}
	if l.deps.Lead != nil {
		l.deps.Lead(ctx, l.term)
		return nil
	}
	if err := l.alone(ctx); err != nil {
		return err
	}
	return run(ctx, l.life.Load())
}

// alone takes all leases back to a server that was one of several, and is alone now.
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

// retry is how long who could not begin waits.
const retry = time.Second

// term has the service for as long as this server leads.
func (l *Lessee) term(ctx context.Context) {
	for ctx.Err() == nil {
		if err := l.live(ctx); err != nil && ctx.Err() == nil {
			l.deps.Log.Warn("the execution service cannot begin yet", "error", err)
			clock.Sleep(ctx, l.deps.Clock, retry)
		}
	}
}

// live begins an incarnation, with all leases, and runs the service under it until ctx ends.
func (l *Lessee) live(ctx context.Context) error {
	lease, former, err := l.begin(ctx)
	if err != nil {
		return err
	}
	life, err := l.deps.Open(lease, former, l.holds)
	if err != nil {
		return err
	}
	var renewing sync.WaitGroup
	defer renewing.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	renewing.Go(func() { l.renew(ctx) }) // ends with ctx
	life.lease = lease
	l.publish(life)
	err = run(ctx, life)
	l.publish(nil)
	if lease != 0 && life.Runners.Recorded() {
		l.giveBack(ctx, lease)
	}
	return err
}

// grace is how long a leader that begins waits for what the one before gives back, and that one for a leader that begins.
const grace = time.Second

// giveBack lets the leader that follows have the warm runners, none of which was handed out. If there is none in time, or this
// process stops while it leads, the next one has them stopped.
func (l *Lessee) giveBack(ctx context.Context, lease uint64) {
	if l.deps.Leads() {
		return
	}
	ctx, cancel := l.deps.Clock.WithTimeout(context.WithoutCancel(ctx), 2*grace)
	defer cancel()
	others := func() bool {
		return slices.ContainsFunc(l.deps.Lessees(), func(o *cluster.Lessee) bool { return o.Incarnation != lease })
	}
	if !l.await(ctx, others) {
		return
	}
	if err := l.deps.Intake.EndIncarnation(ctx, lease, 0, true); err != nil {
		l.deps.Log.Warn("giving warm runners back", "error", err)
	}
}

// await waits until enough says so of the lessees, or ctx ends; it reports whether enough did.
func (l *Lessee) await(ctx context.Context, enough func() bool) bool {
	for {
		changed := l.deps.Changed()
		if enough() {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// begin begins an incarnation and returns it, once all leases are its, and its former.
func (l *Lessee) begin(ctx context.Context) (lease, former uint64, err error) {
	if l.deps.Intake == nil {
		return 0, 0, nil
	}
	if err := runner.Settle(ctx, l.cfg.Journal, l.deps.Record); err != nil {
		return 0, 0, err
	}
	if lease, former, err = l.deps.Intake.BeginIncarnation(ctx, l.cfg.Server); err != nil {
		return 0, 0, err
	}
	only := func() bool { return len(l.deps.Lessees()) == 1 }
	limit, cancel := l.deps.Clock.WithTimeout(ctx, grace)
	defer cancel()
	l.await(limit, only)
	for _, other := range l.deps.Lessees() {
		if other.Incarnation == lease {
			continue
		}
		if err := l.deps.Intake.EndIncarnation(ctx, other.Incarnation, lease, false); err != nil {
			return 0, 0, err
		}
	}
	return lease, former, nil
}

// How long this server takes it for sure that it leads, from before it looked, and how often it looks. A process that stood
// still, or whose machine did, hands out nothing before it has looked again.
const (
	lasts = time.Second
	look  = 250 * time.Millisecond
)

// renew looks again and again whether this server leads.
func (l *Lessee) renew(ctx context.Context) {
	for more := true; more; more = clock.Sleep(ctx, l.deps.Clock, look) {
		until := l.deps.Clock.Now().Add(lasts)
		if l.deps.Leads() {
			l.until.Store(&until)
		}
	}
}

// holds reports whether what is leased to this server is still its to hand out.
func (l *Lessee) holds() bool {
	until := l.until.Load()
	return until != nil && l.deps.Clock.Now().Before(*until)
}

// publish makes the life that of the faces.
func (l *Lessee) publish(life *Life) {
	l.life.Store(life)
	l.changed.Send()
}

// Incarnation is that of the service that there is; 0 while there is none, and of a server that is alone.
func (l *Lessee) Incarnation() uint64 {
	if life := l.life.Load(); life != nil {
		return life.lease
	}
	return 0
}

// patience is how long a request waits for the service to begin.
const patience = 5 * time.Second

// now returns the service, which may begin a moment later. Errors: NotLeader: another server has it; ctx's.
func (l *Lessee) now(ctx context.Context) (*Life, error) {
	if life := l.life.Load(); life != nil {
		return life, nil
	}
	timer := l.deps.Clock.NewTimer(patience)
	defer timer.Stop()
	for {
		changed := l.changed.C()
		if life := l.life.Load(); life != nil {
			return life, nil
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

// Withhold is runner.Service's, of the service that there is.
func (l *Lessee) Withhold(ctx context.Context, allocIDs []string) (giveBack func()) {
	if life := l.life.Load(); life != nil {
		return life.Runners.Withhold(ctx, allocIDs)
	}
	return func() {}
}
