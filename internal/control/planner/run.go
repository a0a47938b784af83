package planner

import (
	"context"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/stack"
)

// entry is a raft entry in the making.
type entry struct {
	submissions []*submission
	command     *command.ApplyPlans
	allocs      int
	placed      []placement
	index       uint64
	err         error
	done        chan struct{} // closed when index and err are set
}

// landed reports whether the entry was proposed and answered; nil was not.
func (e *entry) landed() bool {
	if e == nil {
		return false
	}
	select {
	case <-e.done:
		return true
	default:
		return false
	}
}

// placement remembers where a job was placed, to look after the commit whether the node is still there.
type placement struct {
	job    *drover.Job
	nodeID string
}

// Run checks and commits until ctx ends. Plans that are submitted while it does not run are refused.
func (p *Planner) Run(ctx context.Context) error {
	p.setStopped(nil)
	for ctx.Err() == nil {
		var landed chan struct{}
		if p.flying != nil {
			landed = p.flying.done
		}
		clock.Await(ctx, p.deps.Clock, clock.Forever, landed, p.arrived.C())
		if p.flying.landed() {
			p.land()
		}
		p.gather()
		for p.takeOff(ctx) {
			p.gather()
		}
		p.mark(ctx)
	}
	p.stop()
	return ctx.Err()
}

// stop waits for what is on its way, whose context has ended, and refuses the rest.
func (p *Planner) stop() {
	gone := drover.Errorf(drover.Unavailable, "the planner is not running: no leadership")
	if p.flying != nil {
		<-p.flying.done
		p.land()
	}
	if p.next != nil {
		p.answer(p.next, 0, gone)
		p.next = nil
	}
	p.over = overlay{}
	p.setStopped(gone)
}

// gather moves plans from the queue into the next entry, checked.
func (p *Planner) gather() {
	var v *view
	for p.next == nil || (len(p.next.submissions) < p.cfg.MaxPlans && p.next.allocs < p.cfg.MaxAllocs) {
		s := p.dequeue()
		if s == nil {
			return
		}
		if token, ok := p.deps.Token(s.plan.EvalID); s.plan.EvalToken != "" && (!ok || token != s.plan.EvalToken) {
			s.end(drover.Errorf(drover.Conflict, "evaluation %s: the token is no longer valid", s.plan.EvalID))
			continue
		}
		if v == nil {
			v = &view{Snapshot: p.deps.State(), over: p.over}
		}
		began := p.deps.Clock.Now()
		s.result = check(v, s.plan)
		p.took("nomad.nomad.plan.evaluate", began)
		for _, id := range s.result.RejectedNodes {
			p.deps.Samples.Count("nomad.nomad.plan.node_rejected", 1, "node_id", id)
			p.rejected.note(v.Node(id), began)
		}
		p.over.addResult(&s.result)
		if p.next == nil {
			p.next = &entry{command: &command.ApplyPlans{}, done: make(chan struct{})}
		}
		p.next.add(s, cluster.VersionOf(v.Cluster()))
	}
}

// takeOff proposes the next entry if none is on its way; it reports whether there is room for a new one.
func (p *Planner) takeOff(ctx context.Context) bool {
	if p.flying != nil || p.next == nil {
		return false
	}
	e := p.next
	p.next = nil
	if e.empty() {
		p.answer(e, p.deps.State().Index(), nil)
		return true
	}
	p.flying = e
	e.command.Time = p.deps.Clock.Now().UnixNano()
	clock.Go(p.deps.Clock, func() { // ends when the proposal is answered, at the latest when ctx ends
		stack.Grow16K()
		defer close(e.done)
		defer p.took("nomad.nomad.plan.apply", p.deps.Clock.Now())
		e.index, _, e.err = p.deps.Log.Propose(ctx, e.command)
		if e.err == nil {
			p.recheck(ctx, e)
		}
	})
	return true
}

// land answers those who wait for the entry on its way, which is there.
func (p *Planner) land() {
	e := p.flying
	p.flying = nil
	p.over = overlay{}
	p.over.add(p.next)
	p.answer(e, e.index, e.err)
}

// answer gives the workers their results with the entry's index. A worker whose plan was refused in part must not
// schedule again on a state older than that.
func (p *Planner) answer(e *entry, index uint64, err error) {
	for _, s := range e.submissions {
		s.result.AllocIndex = index
		if s.result.RefreshIndex > 0 {
			s.result.RefreshIndex = max(s.result.RefreshIndex, index)
		}
		s.end(err)
	}
}
