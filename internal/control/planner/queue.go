package planner

import "github.com/drover-project/drover"

// submission is a plan on its way.
type submission struct {
	plan   *drover.Plan
	evals  []*drover.Evaluation
	held   withheld
	result drover.PlanResult
	err    error
	done   chan struct{} // closed when result and err are set
	seq    uint64
}

// end answers who waits.
func (s *submission) end(err error) {
	s.err = err
	close(s.done)
}

// answered reports whether result and err are set.
func (s *submission) answered() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// settled reports whether the state has what became of the plan. One whose proposal failed may be committed later.
func (s *submission) settled() bool {
	return s.answered() && (s.err == nil || drover.CodeOf(s.err) == drover.Conflict)
}

// before orders by priority, then by arrival.
func (s *submission) before(o *submission) bool {
	if s.plan.Priority != o.plan.Priority {
		return s.plan.Priority > o.plan.Priority
	}
	return s.seq < o.seq
}

// enqueue puts a plan in the queue, and returns the reason while the planner is stopped.
func (p *Planner) enqueue(s *submission) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped != nil {
		return p.stopped
	}
	p.seq++
	s.seq = p.seq
	p.queue.Push(s)
	p.arrived.Send()
	return nil
}

// dequeue takes the plan with the highest priority, the oldest among equals; nil if none waits.
func (p *Planner) dequeue() *submission {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.queue.Len() == 0 {
		return nil
	}
	return p.queue.Pop()
}

// setStopped refuses (or, with nil, accepts) submissions, and answers those that wait with err.
func (p *Planner) setStopped(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = err
	if err == nil {
		return
	}
	for p.queue.Len() > 0 {
		p.queue.Pop().end(err)
	}
}
