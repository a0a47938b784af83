package pool

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/fleet/provider"
	"github.com/drover-project/drover/internal/fleet/scaler"
)

// Demand tells which work waits for machines.
type Demand interface {
	// Demand returns what waits for nodes of the pool; changed is closed by the next change.
	Demand(nodePool string) (classes []fleet.DemandClass, changed <-chan struct{})
}

// Nodes is control's view of the nodes that showed a fleet's token, and its means to keep work off them.
type Nodes interface {
	// Nodes returns all of them; changed is closed by the next change.
	Nodes() (nodes []Node, changed <-chan struct{})
	// Drain lets no new work onto the node and moves what can be moved; at deadline what is left is killed (zero = never).
	Drain(ctx context.Context, node string, deadline time.Time) error
	// Cordon lets no new work onto the node; what runs there goes on.
	Cordon(ctx context.Context, node string) error
	// Undrain takes Drain and Cordon back.
	Undrain(ctx context.Context, node string) error
}

// Intents is the raft log's part: an intent is recorded before its machine is created.
type Intents interface {
	Load(ctx context.Context) ([]fleet.Durable, error)
	Record(ctx context.Context, intents []fleet.Durable) error
	// Update records what became of machines; those in state gone need no intent any more.
	Update(ctx context.Context, u Update) error
}

// Deps is what a Pool needs of others.
type Deps struct {
	Clock    clock.Clock
	Log      *slog.Logger
	Provider provider.Provider
	Demand   Demand
	Nodes    Nodes
	Intents  Intents
	// Leads returns once this server surely leads: nobody else does at some moment of the call. nil = it always does.
	// Errors: it does not, or nobody knows.
	Leads   func(ctx context.Context) error
	Decided func(took time.Duration) // told of each decision; nil = nobody is
}

// The loop's periods.
const (
	coalesce    = 50 * time.Millisecond // from a change of demand to the decision
	resync      = 10 * time.Second      // between looks at all nodes
	chargeEvery = 10 * time.Second      // between entries of the ledger; rarer in big fleets
	callTimeout = time.Minute
	surelyLeads = 300 * time.Millisecond // after a moment at which this server surely led: servers elect another later
	tellAgain   = time.Second            // from an update that the log refused to the next one
)

// Pool is the loop around a Core: it runs on the leading server only.
type Pool struct {
	cfg  Config
	deps Deps
	told chan func(now time.Time, c *Core) // what happened and what operators ask for, for the loop
	kept chan chan<- error                 // who waits for the log to know what the core knows
}

// New returns a pool that does nothing before Run.
func New(cfg Config, deps Deps) *Pool {
	cfg.Caps = deps.Provider.Capabilities()
	return &Pool{cfg: cfg, deps: deps, told: make(chan func(time.Time, *Core)), kept: make(chan chan<- error)}
}

// Recorded returns once the log has what the core knew of its machines when it was called. Only the loop writes to the log, one
// update after the other, so that no older one can follow. Errors: Canceled, and the log's.
func (p *Pool) Recorded(ctx context.Context) error {
	done := make(chan error, 1) // the loop does not wait for who went away
	select {
	case p.kept <- done:
	case <-ctx.Done():
		return drover.Errorf(drover.Canceled, "asking the fleet: %w", context.Cause(ctx))
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return drover.Errorf(drover.Canceled, "waiting for the fleet's log: %w", context.Cause(ctx))
	}
}

// Do calls f on the loop, with the core: to read it, or to do an operator's bidding. Errors: Canceled.
func (p *Pool) Do(ctx context.Context, f func(now time.Time, c *Core) error) (err error) {
	done := make(chan struct{})
	call := func(now time.Time, c *Core) {
		err = f(now, c)
		close(done)
	}
	select {
	case p.told <- call:
	case <-ctx.Done():
		return drover.Errorf(drover.Canceled, "asking the fleet: %w", context.Cause(ctx))
	}
	<-done
	return err
}

// Plan decides without doing anything: what would happen now, and why. Errors: NotFound.
func (p *Pool) Plan(ctx context.Context, name string) (out scaler.Output, err error) {
	err = p.Do(ctx, func(now time.Time, c *Core) error {
		in, err := c.Input(now, name)
		if err == nil {
			out = scaler.Decide(in)
		}
		return err
	})
	return out, err
}

// SetPolicies replaces the pools; the policies are canonicalized and valid. Errors: Canceled.
func (p *Pool) SetPolicies(ctx context.Context, policies []*fleet.Policy) error {
	return p.Do(ctx, func(now time.Time, c *Core) error {
		c.SetPolicies(now, policies)
		return nil
	})
}

// Run keeps the fleet until ctx ends. Machines stay as they are then: the next Run adopts them. Errors: the log of
// intents can't be read; else ctx's.
func (p *Pool) Run(ctx context.Context) error {
	intents, err := p.deps.Intents.Load(ctx)
	if err != nil {
		return fmt.Errorf("loading the fleet's intents: %w", err)
	}
	core := NewCore(p.deps.Clock.Now(), p.cfg)
	if p.cfg.Learned != nil {
		if err := core.beliefs.Remember(p.cfg.Learned()); err != nil {
			p.deps.Log.Warn("what was learned of the cloud is learned anew", "error", err)
		}
	}
	core.Restore(p.deps.Clock.Now(), intents)
	var calls sync.WaitGroup
	defer calls.Wait()
	callCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	l := &loop{Pool: p, core: core, calls: &calls, ctx: callCtx, answers: make(chan func(time.Time, *Core)), charged: p.deps.Clock.Now()}
	return l.run(ctx)
}

// loop is one Run. ctx is that of the calls, which end with it.
type loop struct {
	*Pool
	core    *Core
	calls   *sync.WaitGroup
	ctx     context.Context
	answers chan func(time.Time, *Core)
	demand  map[string]<-chan struct{}
	nodes   <-chan struct{}
	look    time.Duration             // how long the last look at all nodes took
	telling bool                      // an update of the log is under way
	tellAt  time.Time                 // not before; zero = at once
	waiting []chan<- error            // for the next one; a place each
	doomed  []Effect                  // destroys that the log does not know yet
	charged time.Time                 // when the ledger was brought up to date
	led     atomic.Pointer[time.Time] // when this server last surely led
}

// run handles one event after the other until ctx ends, and returns ctx's cause. It alone touches the core. Whatever
// happens only moves the time of the next decision forward, so a burst of events leads to one decision.
func (l *loop) run(ctx context.Context) error {
	timer := l.deps.Clock.NewTimer(0)
	defer timer.Stop()
	next, synced := l.deps.Clock.Now(), time.Time{}
	sooner := func(t time.Time) {
		if t.Before(next) {
			next = t
			timer.Reset(max(0, t.Sub(l.deps.Clock.Now())))
		}
	}
	for {
		changed := l.anyDemand()
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case tell := <-l.answers:
			now := l.deps.Clock.Now()
			tell(now, l.core)
			sooner(now)
		case tell := <-l.told:
			now := l.deps.Clock.Now()
			tell(now, l.core)
			sooner(now)
		case done := <-l.kept:
			l.waiting = append(l.waiting, done)
			sooner(l.deps.Clock.Now())
		case <-changed:
			l.demand = nil
			sooner(l.deps.Clock.Now().Add(coalesce))
		// Reading all nodes of a big fleet takes long, so changes are collected for ten times as long as the last look
		// took.
		case <-l.nodes:
			l.nodes, synced = nil, time.Time{}
			sooner(l.deps.Clock.Now().Add(max(coalesce, 10*l.look))) // at most a tenth of the time
		case <-timer.C():
			now := l.deps.Clock.Now()
			if now.Sub(synced) >= resync {
				l.sync(now)
				l.look, synced = l.deps.Clock.Now().Sub(now), now
			}
			next = l.decide(now) //nolint:contextcheck // what it begins has the context of the loop's calls
			if r := synced.Add(resync); r.Before(next) {
				next = r
			}
			timer.Reset(max(0, next.Sub(now)))
		}
	}
}

// anyDemand returns the channel of a pool's demand that is watched. With several pools, one after the other is enough: every
// decision reads all of them, and the resync bounds the delay.
func (l *loop) anyDemand() <-chan struct{} {
	var last <-chan struct{}
	for _, p := range l.core.Policies() {
		if c := l.demand[p.NodePool]; c != nil {
			select {
			case <-c:
				return c
			default:
				last = c
			}
		}
	}
	return last
}

// decide reads the demand, decides, and begins what is to be done.
func (l *loop) decide(now time.Time) (next time.Time) {
	l.demand = map[string]<-chan struct{}{}
	for _, p := range l.core.Policies() {
		classes, changed := l.deps.Demand.Demand(p.NodePool)
		l.core.SetDemand(p.NodePool, classes)
		l.demand[p.NodePool] = changed
	}
	next = now.Add(resync)
	wake := l.core.Decide(now)
	if l.deps.Decided != nil {
		l.deps.Decided(l.deps.Clock.Now().Sub(now))
	}
	if !wake.IsZero() && wake.Before(next) {
		next = wake
	}
	for list := l.core.Effects(); len(list) > 0; list = l.core.Effects() {
		for _, e := range list {
			if e.Kind == EffectDestroy {
				l.doomed = append(l.doomed, e)
				continue
			}
			l.begin(e)
		}
	}
	l.record(now)
	if l.tellAt.After(now) && l.tellAt.Before(next) {
		next = l.tellAt
	}
	return next
}

// begin does the effects, each in a goroutine.
func (l *loop) begin(list ...Effect) {
	for _, e := range list {
		l.calls.Go(func() { l.perform(e) }) // ends with its call, at the latest with ctx
	}
}

// record tells the log what changed, one call at a time. The log has what is to be destroyed before the cloud is asked. So
// whoever leads next goes on with it, and gives no work to a machine that an order under way may end.
func (l *loop) record(now time.Time) {
	every := chargeEvery * time.Duration(min(1+l.core.Totals(now).Machines/100, 30)) // five minutes at most
	if now.Sub(l.charged) >= every {
		l.core.Charge(now)
		l.charged = now
	}
	if l.telling || now.Before(l.tellAt) {
		return
	}
	// Whoever waits in Recorded gets the answer of this update, which contains all that the core knew when they asked.
	u, waiting, doomed := l.core.TakeUpdate(now), l.waiting, l.doomed
	l.waiting, l.doomed = nil, nil
	answer := func(err error) {
		for _, done := range waiting {
			done <- err
		}
	}
	if u.Empty() {
		answer(nil)
		l.begin(doomed...) // the log knows it from an earlier try
		return
	}
	l.telling = true
	l.calls.Go(func() { // ends with its call, at the latest with ctx
		ctx, cancel := l.deps.Clock.WithTimeout(l.ctx, callTimeout)
		defer cancel()
		err := l.written(func() error { return l.deps.Intents.Update(ctx, u) })
		answer(err)
		if err == nil {
			l.begin(doomed...)
		}
		l.tell(func(now time.Time, c *Core) {
			l.telling = false
			if err != nil {
				l.deps.Log.Warn("recording the fleet's machines", "error", err)
				c.RestoreUpdate(u)
				l.doomed, l.tellAt = append(doomed, l.doomed...), now.Add(tellAgain)
			}
		})
	})
}

// sync tells the core what control knows of the nodes.
func (l *loop) sync(now time.Time) {
	nodes, changed := l.deps.Nodes.Nodes()
	l.nodes = changed
	for _, n := range nodes {
		// A lost node that the core knows must not register again, as that would count as a sign of life.
		if (n.Lost || n.Silent) && l.core.Foreign(n.Intent) {
			continue // the log may be a restored one: its agent calls another cluster, or nobody
		}
		if n.Lost && l.core.Knows(n.ID) {
			l.core.Lost(now, n.ID, n.Report.Work)
			continue
		}
		if err := l.core.Registered(now, n.Intent, n.ID); err != nil {
			l.deps.Log.Debug("a node calls that the fleet does not know", "node", n.ID, "intent", n.Intent, "error", err)
			continue
		}
		if n.Lost {
			l.core.Lost(now, n.ID, n.Report.Work)
			continue
		}
		l.core.Reported(now, n.ID, n.Report)
	}
}
