package evalbroker

import (
	"time"

	"github.com/drover-project/drover"
)

// Enqueue takes evaluations in. One that is already known is replaced by its newer copy unless a worker has it.
// One with a WaitUntil after now (or a Wait) is delivered no earlier.
func (b *Broker) Enqueue(now time.Time, evals ...*drover.Evaluation) {
	b.expire(now)
	for _, e := range evals {
		b.enqueue(now, e)
	}
}

func (b *Broker) enqueue(now time.Time, e *drover.Evaluation) {
	if known := b.evals[e.ID]; known != nil {
		known.replace(e)
		return
	}
	b.seq++
	it := &item{eval: e, queue: e.Type, seq: b.seq}
	b.evals[e.ID] = it
	until := e.WaitUntil
	if until.IsZero() && e.Wait > 0 {
		until = now.Add(e.Wait)
	}
	if until.After(now) {
		it.deadline = until
		b.pushDeadline(it, delayed)
		return
	}
	b.admit(it)
}

// replace takes a newer copy of a known evaluation.
func (it *item) replace(e *drover.Evaluation) {
	switch {
	case it.taken():
		if e.ModifyIndex > it.eval.ModifyIndex || e.SnapshotIndex > it.eval.SnapshotIndex {
			it.again = e
		}
	case it.eval.Priority == e.Priority && it.eval.CreateIndex == e.CreateIndex: // its place in the heap stays right
		it.eval = e
	}
}

// admit gives it its job's slot, or puts it behind the one that has it; only the newest waits there.
func (b *Broker) admit(it *item) {
	key := it.eval.Job()
	s := b.jobs[key]
	if s == nil {
		s = &slot{}
		b.jobs[key] = s
	}
	if s.current == nil {
		s.current = it
		b.pushReady(it)
		return
	}
	it.state = pending
	old := s.pending
	if old != nil && newer(old.eval, it.eval) {
		old, it = it, old
	}
	s.pending = it
	if old != nil {
		delete(b.evals, old.eval.ID)
		b.superseded = append(b.superseded, old.eval)
	}
}

// newer reports whether a was made after b; equals are not newer, so that the later arrival is kept.
func newer(a, b *drover.Evaluation) bool {
	if a.CreateIndex != b.CreateIndex {
		return a.CreateIndex > b.CreateIndex
	}
	return a.ModifyIndex > b.ModifyIndex
}

// Remove forgets an evaluation that ended in the state, unless a worker has it: the worker's Ack does that.
func (b *Broker) Remove(evalID string) {
	it := b.evals[evalID]
	if it == nil || it.taken() {
		return
	}
	b.unlink(it)
	if it.state == pending {
		b.jobs[it.eval.Job()].pending = nil
		delete(b.evals, evalID)
		return
	}
	held := it.state != delayed
	delete(b.evals, evalID)
	if held {
		b.release(it)
	}
}

// release frees the job's slot and lets the waiting evaluation have it.
func (b *Broker) release(it *item) {
	key := it.eval.Job()
	s := b.jobs[key]
	s.current, s.pending = s.pending, nil
	if s.current == nil {
		delete(b.jobs, key)
		return
	}
	b.pushReady(s.current)
}
