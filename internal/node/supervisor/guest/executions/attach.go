package executions

import (
	"time"

	"github.com/drover-project/drover/execution"
)

const keepFinished = 10 * time.Minute // how long an exit waits for a lost agent

// join adds a session that reads from the offsets on.
func (x *command) join(s *Session, from execution.Offsets) {
	x.mu.Lock()
	defer x.mu.Unlock()
	// Somebody is there again: the execution need not end, and its exit is not forgotten.
	if x.leaving != nil {
		x.leaving.Stop()
		x.leaving = nil
	}
	// Offsets come from outside. One beyond the end would wait for output that may never come, so it starts at the end.
	s.pos = [2]int64{max(from.Stdout, 0), max(from.Stderr, 0)}
	for i := range s.pos {
		s.pos[i] = min(s.pos[i], x.out[i].end)
	}
	s.acked = s.pos
	x.sessions[s] = true
	x.cond.Broadcast()
}

// leave removes a session. The last one decides with Detach what becomes of the execution.
func (x *command) leave(s *Session, lost, delivered bool) {
	x.mu.Lock()
	delete(x.sessions, s)
	last := len(x.sessions) == 0
	finished := x.receipt != nil
	taken := finished && delivered && !lost
	now := x.Clock.Now()
	if last && lost {
		x.hold = now.Add(x.Boot().Grace)
	}
	x.cond.Broadcast()
	x.mu.Unlock()
	switch {
	case !last:
	case taken && x.spec.Keep > 0:
		x.leaveAfter(x.spec.Keep)
		x.table.take(x)
	case taken && x.spec.Detach == 0:
		x.table.forget(x)
	case finished:
		x.leaveAfter(x.keepTime())
	// A lost agent is probably restarting. Even an execution that would end with its last session gets the time to be found again.
	case lost:
		x.wakeAfter(x.Boot().Grace)
		if x.spec.Detach >= 0 {
			x.leaveAfter(max(x.spec.Detach, x.Boot().Grace))
		}
	case x.spec.Detach == 0:
		go x.kill(execution.CauseKilled) // ends when the tree is dead
	case x.spec.Detach > 0:
		x.leaveAfter(x.spec.Detach)
	}
}

// keepTime is how long an exit that nobody has fetched is kept.
func (x *command) keepTime() time.Duration { return max(keepFinished, x.spec.Detach) }

// leaveAfter ends or forgets the execution when nobody attaches for so long.
func (x *command) leaveAfter(d time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.sessions) > 0 {
		return
	}
	if x.leaving != nil {
		x.leaving.Stop()
	}
	x.leaving = x.Clock.AfterFunc(d, func() {
		x.mu.Lock()
		alone, finished := len(x.sessions) == 0, x.receipt != nil
		x.mu.Unlock()
		switch {
		case !alone:
		case finished:
			x.table.forget(x)
		default:
			x.kill(execution.CauseKilled)
		}
	})
}

// wakeAfter lets writers go on when output is no longer held back.
func (x *command) wakeAfter(d time.Duration) {
	// The millisecond makes sure that hold is over when the writers look.
	x.Clock.AfterFunc(d+time.Millisecond, func() {
		x.mu.Lock()
		x.cond.Broadcast()
		x.mu.Unlock()
	})
}

// keepFrom returns the offset from which on bytes of a stream must not be dropped. Caller holds mu.
func (x *command) keepFrom(i int) int64 {
	st := &x.out[i]
	switch {
	case len(x.sessions) > 0:
		from := st.end
		for s := range x.sessions {
			from = min(from, s.acked[i])
		}
		return from
	case x.cause == "" && x.Clock.Now().Before(x.hold):
		return st.acked
	default:
		return st.end
	}
}
