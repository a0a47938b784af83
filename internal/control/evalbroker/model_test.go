package evalbroker

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
)

// model is the broker as a list: slow, and simple enough to believe.
type model struct {
	list []*modelEval
	seq  int
}

type modelEval struct {
	eval       *drover.Evaluation
	seq        int
	until      time.Time // not before
	token      string    // with a worker until held
	held       time.Time // zero while its plan is with the planner
	deliveries int
	slot       bool
}

// settle brings the model to now: timeouts, delays, slots.
func (m *model) settle(now time.Time) {
	for {
		at, e := time.Time{}, (*modelEval)(nil)
		for _, x := range m.list {
			d := x.until
			if x.token != "" {
				d = x.held
			}
			if d.IsZero() || d.After(now) {
				continue
			}
			if e == nil || d.Before(at) {
				at, e = d, x
			}
		}
		if e == nil {
			return
		}
		if e.token != "" {
			m.refuse(now, e)
		} else {
			e.until = time.Time{}
			m.admit(e)
		}
	}
}

func (m *model) refuse(now time.Time, e *modelEval) {
	e.token = ""
	if e.deliveries >= 3 {
		return
	}
	wait := time.Second
	if e.deliveries > 1 {
		wait = time.Duration(e.deliveries-1) * 20 * time.Second
	}
	e.until = now.Add(wait)
}

func (m *model) admit(e *modelEval) {
	if e.slot {
		return
	}
	var holder, waiting *modelEval
	for _, x := range m.list {
		if x == e || x.eval.JobID != e.eval.JobID || !x.until.IsZero() && !x.slot {
			continue
		}
		if x.slot {
			holder = x
		} else {
			waiting = x
		}
	}
	switch {
	case holder == nil:
		e.slot = true
	case waiting != nil && newer(waiting.eval, e.eval):
		m.remove(e)
	case waiting != nil:
		m.remove(waiting)
	}
}

func (m *model) remove(e *modelEval) {
	m.list = slices.DeleteFunc(m.list, func(x *modelEval) bool { return x == e })
}

func (m *model) dequeue(failed bool) *modelEval {
	var best *modelEval
	for _, x := range m.list {
		if !x.slot || x.token != "" || !x.until.IsZero() || (x.deliveries >= 3) != failed {
			continue
		}
		if best == nil || before(&item{eval: x.eval, seq: uint64(x.seq)}, &item{eval: best.eval, seq: uint64(best.seq)}) {
			best = x
		}
	}
	return best
}

func (m *model) ack(e *modelEval) {
	m.remove(e)
	for _, x := range m.list {
		if x.eval.JobID == e.eval.JobID && !x.slot && x.until.IsZero() {
			x.slot = true
			return
		}
	}
}

func TestBrokerAgainstModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		b, m, now, n := New(Config{}), &model{}, t0, 0
		held := func() *modelEval {
			var list []*modelEval
			for _, x := range m.list {
				if x.token != "" {
					list = append(list, x)
				}
			}
			if len(list) == 0 {
				return nil
			}
			return list[rapid.IntRange(0, len(list)-1).Draw(rt, "held")]
		}
		worker := func(say func(now time.Time, evalID, token string) error, model func(*modelEval)) func(*rapid.T) {
			return func(*rapid.T) {
				if x := held(); x != nil {
					require.NoError(rt, say(now, x.eval.ID, x.token))
					model(x)
				}
			}
		}
		dequeue := func(queue string, failed bool) {
			e, token, ok := b.Dequeue(now, queue)
			want := m.dequeue(failed)
			if ok != (want != nil) || ok && e.ID != want.eval.ID {
				rt.Fatalf("dequeued %v, the model says %+v", e, want)
			}
			if ok {
				want.token, want.held, want.deliveries = token, now.Add(time.Minute), want.deliveries+1
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"": func(*rapid.T) { m.settle(now) },
			"enqueue": func(rt *rapid.T) {
				n++
				e := eval(fmt.Sprint(n), fmt.Sprint(rapid.IntRange(0, 3).Draw(rt, "job")), rapid.IntRange(1, 3).Draw(rt, "priority")*10,
					uint64(rapid.IntRange(1, 9).Draw(rt, "index")))
				e.WaitUntil = t0
				if d := rapid.IntRange(-1, 60).Draw(rt, "wait"); d > 40 {
					e.WaitUntil = now.Add(time.Duration(d)*time.Second + time.Duration(n))
				}
				b.Enqueue(now, e)
				m.seq++
				x := &modelEval{eval: e, seq: m.seq}
				m.list = append(m.list, x)
				if e.WaitUntil.After(now) {
					x.until = e.WaitUntil
				} else {
					m.admit(x)
				}
			},
			"dequeue":    func(*rapid.T) { dequeue(drover.JobTypeService, false) },
			"failed":     func(*rapid.T) { dequeue(FailedQueue, true) },
			"ack":        worker(b.Ack, m.ack),
			"nack":       worker(b.Nack, func(x *modelEval) { m.refuse(now, x) }),
			"submitting": worker(b.Submitting, func(x *modelEval) { x.held = time.Time{} }),
			"submitted":  worker(b.Submitted, func(x *modelEval) { x.held = now.Add(time.Minute) }),
			"wait": func(rt *rapid.T) {
				// Odd nanoseconds: no two deadlines at once, of which the order would be open.
				now = now.Add(time.Duration(rapid.IntRange(1, 70).Draw(rt, "seconds"))*time.Second + time.Duration(n*7+1))
				b.Expire(now)
				m.settle(now)
			},
		})
	})
}
