package planner

import (
	"context"
	"iter"
	"log/slog"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/minheap"
	"github.com/drover-project/drover/internal/quota"
	"github.com/drover-project/drover/internal/telemetry"
	"github.com/drover-project/drover/internal/wake"
)

// Snapshot is what Check reads; *store.Snapshot satisfies it.
type Snapshot interface {
	Index() uint64
	Node(id string) *drover.Node
	Allocation(id string) *drover.Allocation
	UnfinishedByNode(nodeID string) iter.Seq[*drover.Allocation]
	Used(nodeID string) drover.Capacity
	Cluster() *cluster.State
	quota.Accounts
}

// Log commits commands; *raftlog.Log satisfies it.
type Log interface {
	Propose(ctx context.Context, c command.Command) (index uint64, result any, err error)
}

// Config bounds the entries. The zero value of a field means its default.
type Config struct {
	MaxPlans  int // plans in one entry; default 512
	MaxAllocs int // allocations in one entry, but for a node or an all-or-nothing plan that has more alone; default 5,000
	// Rejections says when a node takes no more work that plans are refused for; default never.
	Rejections Rejections
}

// Deps is what a Planner needs.
type Deps struct {
	Log   Log
	State func() Snapshot // the newest state
	// Token returns the token of an evaluation that is with a worker (evalbroker.Shell.Outstanding). A plan whose
	// token is another was made by a worker that took too long, and is refused.
	Token func(evalID string) (token string, ok bool)
	// Withhold, if set, is called before warm runners are stopped. Until giveBack is called none of them is handed out by the
	// incarnations leases (empty: nobody hands out any). Those that were are in the state as claimed when it returns (exec/runner's
	// Service.Withhold). What another incarnation is leased before the plan is applied the state machine does not stop. settled says
	// that this server's state has what became of them: nobody knows it of a plan that was proposed and not answered. Errors:
	// Unavailable: a server that may have handed some of them out does not answer.
	Withhold func(ctx context.Context, allocIDs []string) (leases []uint64, giveBack func(settled bool), err error)
	Clock    clock.Clock
	IDs      id.Source
	Logger   *slog.Logger
	Samples  *telemetry.Samples // may be nil
}

// Planner checks and commits plans, one entry at a time.
type Planner struct {
	cfg     Config
	deps    Deps
	arrived wake.Signal // the queue is no longer empty

	mu      sync.Mutex // guards queue and stopped
	queue   *minheap.Heap[*submission]
	seq     uint64 // of the last submission
	stopped error

	// Owned by the run loop.
	flying   *entry // proposed
	next     *entry // checked, to be proposed as soon as flying is there
	over     overlay
	rejected rejections
}

// New returns a planner; Run makes it work.
func New(cfg Config, deps Deps) *Planner {
	if cfg.MaxPlans <= 0 {
		cfg.MaxPlans = 512
	}
	if cfg.MaxAllocs <= 0 {
		cfg.MaxAllocs = 5000
	}
	return &Planner{
		cfg: cfg, deps: deps, arrived: wake.NewSignal(), over: overlay{}, queue: minheap.New((*submission).before, nil),
		rejected: rejections{Rejections: cfg.Rejections, times: map[string][]time.Time{}},
	}
}

// Queued is how many plans wait to be checked.
func (p *Planner) Queued() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.queue.Len()
}

// took measures what began at a time.
func (p *Planner) took(name string, began time.Time) {
	p.deps.Samples.Took(name, p.deps.Clock.Now().Sub(began))
}

// Submit has a plan checked and committed, and evals with it if all of it was accepted. A result with a RefreshIndex
// means that parts were refused: plan again on a state at least that new. The other parts are committed then, but of
// evals only those with a WaitUntil. A plan of more than Config.MaxAllocs is committed in parts, one after the other.
// Errors: Conflict when the plan's token is no longer valid; NotLeader, Unavailable and Canceled when it is not known
// whether the plan was committed.
func (p *Planner) Submit(ctx context.Context, plan *drover.Plan, evals []*drover.Evaluation) (drover.PlanResult, error) {
	defer p.took("nomad.nomad.plan.submit", p.deps.Clock.Now())
	var result whole
	parts := split(plan, p.cfg.MaxAllocs)
	for i, part := range parts {
		r, err := p.submit(ctx, part, result.evals(evals, i == len(parts)-1))
		if err != nil {
			return drover.PlanResult{}, err
		}
		result.add(r)
	}
	return result.PlanResult, nil
}

// submit has a part of a plan checked and committed, with evals. What it stops is withheld until the log has answered, also where the
// caller does not wait for that.
func (p *Planner) submit(ctx context.Context, plan *drover.Plan, evals []*drover.Evaluation) (drover.PlanResult, error) {
	held, err := p.withhold(ctx, plan)
	if err != nil {
		return drover.PlanResult{}, err
	}
	s := &submission{plan: plan, evals: evals, held: held, done: make(chan struct{})}
	if err := p.enqueue(s); err != nil {
		held.giveBack(true)
		return drover.PlanResult{}, err
	}
	defer func() {
		if s.answered() || ctx.Err() == nil {
			held.giveBack(s.settled())
			return
		}
		clock.Go(p.deps.Clock, func() { // ends with the answer, at the latest when Run does
			clock.Await(context.WithoutCancel(ctx), p.deps.Clock, clock.Forever, s.done)
			held.giveBack(s.settled())
		})
	}()
	if !clock.Await(ctx, p.deps.Clock, clock.Forever, s.done) {
		return drover.PlanResult{}, drover.Errorf(drover.Canceled, "waiting for plan of evaluation %s: %w", plan.EvalID, ctx.Err())
	}
	if s.err != nil {
		return drover.PlanResult{}, s.err
	}
	return s.result, nil
}
