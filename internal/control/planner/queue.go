package planner

import (
	"container/heap"

	"github.com/drover-project/drover"
)

// submission is a plan on its way.
type submission struct {
	plan   *drover.Plan
	evals  []*drover.Evaluation
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

// submissions is a heap by priority, then order of arrival.
type submissions struct {
	heap []*submission
	seq  uint64
}

func (q *submissions) Len() int { return len(q.heap) }
func (q *submissions) Less(i, j int) bool {
	a, b := q.heap[i], q.heap[j]
	if a.plan.Priority != b.plan.Priority {
		return a.plan.Priority > b.plan.Priority
	}
	return a.seq < b.seq
}
func (q *submissions) Swap(i, j int) { q.heap[i], q.heap[j] = q.heap[j], q.heap[i] }
func (q *submissions) Push(x any)    { q.heap = append(q.heap, x.(*submission)) }
func (q *submissions) Pop() any {
	last := len(q.heap) - 1
	s := q.heap[last]
	q.heap[last] = nil
	q.heap = q.heap[:last]
	return s
}

func (p *Planner) enqueue(s *submission) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped != nil {
		return p.stopped
	}
	p.queue.seq++
	s.seq = p.queue.seq
	heap.Push(&p.queue, s)
	select {
	case p.wake <- struct{}{}:
	default:
	}
	return nil
}

func (p *Planner) dequeue() *submission {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.queue.Len() == 0 {
		return nil
	}
	return heap.Pop(&p.queue).(*submission)
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
		heap.Pop(&p.queue).(*submission).end(err)
	}
}
