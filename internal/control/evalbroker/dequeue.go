package evalbroker

import (
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/minheap"
)

// Dequeue hands out the evaluation of the highest priority among the types. It has to be acknowledged or refused with
// the token before the nack timeout. ok is false when there is none now.
func (b *Broker) Dequeue(now time.Time, types ...string) (eval *drover.Evaluation, token string, ok bool) {
	b.expire(now)
	var best *minheap.Heap[*item]
	for _, t := range types {
		h := b.ready[t]
		if h == nil || h.Len() == 0 {
			continue
		}
		if best == nil || before(h.Top(), best.Top()) {
			best = h
		}
	}
	if best == nil {
		return nil, "", false
	}
	it := best.Pop()
	it.deliveries++
	it.token = b.newToken()
	it.deadline = now.Add(b.cfg.NackTimeout)
	b.pushDeadline(it, outstanding)
	return it.eval, it.token, true
}

// Ack says that the evaluation was dealt with. Errors: Conflict when the token is no longer the one handed out last.
func (b *Broker) Ack(now time.Time, evalID, token string) error {
	b.expire(now)
	it, err := b.held(evalID, token)
	if err != nil {
		return err
	}
	b.unlink(it)
	delete(b.evals, evalID)
	b.release(it)
	if it.again != nil {
		b.enqueue(now, it.again)
	}
	return nil
}

// Nack refuses the evaluation: it is delivered again later, or goes to FailedQueue when it was delivered too often.
// Errors: as Ack.
func (b *Broker) Nack(now time.Time, evalID, token string) error {
	b.expire(now)
	it, err := b.held(evalID, token)
	if err != nil {
		return err
	}
	b.unlink(it)
	b.retry(now, it)
	return nil
}

// Postpone gives the evaluation back through no fault of its own: it is delivered again after wait, and the delivery
// does not count. Errors: as Ack.
func (b *Broker) Postpone(now time.Time, evalID, token string, wait time.Duration) error {
	b.expire(now)
	it, err := b.held(evalID, token)
	if err != nil {
		return err
	}
	b.unlink(it)
	it.deliveries--
	it.token = ""
	if it.again != nil {
		it.eval, it.again = it.again, nil
	}
	it.deadline = now.Add(wait)
	b.pushDeadline(it, nacked)
	return nil
}

// Submitting says that a plan of the evaluation is with the planner: it is not delivered again before Submitted, whatever time that takes.
// Another worker would begin on a state without what the log is just about to have, and place that once more. Errors: as Ack.
func (b *Broker) Submitting(now time.Time, evalID, token string) error {
	b.expire(now)
	it, err := b.held(evalID, token)
	if err != nil {
		return err
	}
	b.unlink(it)
	it.state = submitting
	return nil
}

// Submitted says that the planner has answered. From now on the worker has the nack timeout again. Errors: as Ack.
func (b *Broker) Submitted(now time.Time, evalID, token string) error {
	b.expire(now)
	it, err := b.held(evalID, token)
	if err != nil {
		return err
	}
	b.unlink(it)
	it.deadline = now.Add(b.cfg.NackTimeout)
	b.pushDeadline(it, outstanding)
	return nil
}

// Next returns when the broker next wants to be entered, if ever.
func (b *Broker) Next() (at time.Time, ok bool) {
	if b.deadlines.Len() == 0 {
		return time.Time{}, false
	}
	return b.deadlines.Top().deadline, true
}

// Expire runs what is due at now; every other method that takes a time does so too.
func (b *Broker) Expire(now time.Time) { b.expire(now) }

func (b *Broker) expire(now time.Time) {
	for b.deadlines.Len() > 0 && !b.deadlines.Top().deadline.After(now) {
		it := b.deadlines.Pop()
		switch it.state {
		case delayed:
			b.admit(it)
		case nacked:
			b.pushReady(it)
		case outstanding:
			b.retry(now, it)
		case pending, ready, submitting: // have no deadline
		}
	}
}

func (b *Broker) retry(now time.Time, it *item) {
	it.token = ""
	if it.again != nil {
		it.eval, it.again = it.again, nil
	}
	if it.deliveries >= b.cfg.DeliveryLimit {
		it.queue = FailedQueue
		b.pushReady(it)
		return
	}
	wait := b.cfg.FirstNackDelay
	if it.deliveries > 1 {
		wait = time.Duration(it.deliveries-1) * b.cfg.NackDelay
	}
	it.deadline = now.Add(wait)
	b.pushDeadline(it, nacked)
}

func (b *Broker) held(evalID, token string) (*item, error) {
	it := b.evals[evalID]
	if it == nil || !it.taken() || it.token != token {
		return nil, drover.Errorf(drover.Conflict, "evaluation %s: the token is no longer valid", evalID)
	}
	return it, nil
}
