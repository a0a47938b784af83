package sim

import (
	"time"

	"github.com/drover-project/drover/internal/node/taskmachine"
)

// process is a running task. It outlives the agent, and its exit waits for it.
type process struct {
	n    *node
	dead bool // the machine restarted, or it was forgotten
	exit *taskmachine.Exited
	tell func(taskmachine.Exited) // the agent's wait; nil while there is none
}

func (t *localTask) key() string { return t.l.alloc.ID + "/" + t.spec.Name }

// apply makes one step and performs its effects.
func (t *localTask) apply(ev taskmachine.Event) {
	n := t.l.n
	before := t.status.Phase
	next, effects := taskmachine.Step(t.view, t.status, ev, n.clock(), n.w.rng.Float64())
	if !before.CanBecome(next.Phase) {
		n.w.breach("task %s goes from %s to %s on %T", t.key(), before, next.Phase, ev)
	}
	t.status = next
	for _, e := range effects {
		t.perform(e)
	}
}

// answer gives an event later to the agent of now, if it still is the same and nothing newer began.
func (t *localTask) answer(d time.Duration, turn uint64, f func() taskmachine.Event) {
	agent := t.l.n.agent
	agent.after(d, "task", func() {
		if t.turn == turn {
			t.apply(f())
			t.l.settle()
		}
	})
}

// perform starts the work that an effect of the task machine asks for. Its answer comes later, after a drawn time, and
// only if no newer work of the task has begun. Effects that begin no work of their own leave the turn as it was.
func (t *localTask) perform(e taskmachine.Effect) {
	n := t.l.n
	t.turn++
	turn := t.turn
	switch e := e.(type) {
	case taskmachine.Prepare:
		t.answer(n.w.between(time.Millisecond, 100*time.Millisecond), turn, func() taskmachine.Event {
			if n.full {
				return taskmachine.PrepareFailed{Reason: "no space left on device", Recoverable: true}
			}
			return taskmachine.Prepared{}
		})
	case taskmachine.Launch:
		// A slow node takes up to half a minute to start a process.
		slowest := 500 * time.Millisecond
		if n.slow {
			slowest = 30 * time.Second
		}
		fails := !n.w.quiet && n.w.chance(t.option("startfail"))
		took := n.w.between(time.Millisecond, slowest)
		if !fails { // it may run already when the agent dies before it knows
			n.agent.after(took, "launch", t.launch)
		}
		t.answer(took+n.w.between(0, 10*time.Millisecond), turn, func() taskmachine.Event {
			if fails {
				return taskmachine.StartFailed{Reason: "cannot start", Recoverable: n.w.chance(50)}
			}
			t.once()
			return taskmachine.Started{}
		})
	case taskmachine.Await:
		t.await()
	case taskmachine.Cancel:
		t.turn-- // what is under way still answers
	case taskmachine.Stop:
		t.turn--
		x := n.runs[t.key()]
		// The process may end at once, or only when it is killed after its timeout.
		die := e.Delay + n.w.between(0, e.Timeout+time.Millisecond)
		n.agent.after(die, "stop", func() {
			if x != nil {
				x.end(taskmachine.Exited{Signal: 15})
			}
		})
	case taskmachine.Wake:
		t.answer(e.Delay, turn, func() taskmachine.Event { return taskmachine.Due{} })
	case taskmachine.Destroy:
		t.turn--
		delete(n.runs, t.key())
	case taskmachine.Finish:
	}
}

// once checks that a warm runner never runs a second time.
func (t *localTask) once() {
	n := t.l.n
	if t.l.group.Pool != nil && n.ran[t.l.alloc.ID] {
		n.w.breach("warm runner %s is started a second time", t.l.alloc.ID)
	}
	n.ran[t.l.alloc.ID] = true
}

// launch starts the process.
func (t *localTask) launch() {
	n := t.l.n
	if old := n.runs[t.key()]; old != nil && !old.dead && old.exit == nil {
		n.w.breach("task %s is started while it runs", t.key())
	}
	t.checkAlone()
	x := &process{n: n}
	n.runs[t.key()] = x
	ends, code := time.Duration(t.option("run"))*time.Second, 0
	if !n.w.quiet && n.w.chance(t.option("fail")) {
		ends, code = n.w.between(time.Nanosecond, time.Minute), 1 // 0 would be a task that runs for ever
	}
	if ends > 0 {
		n.w.after(ends, "exit", func() { x.end(taskmachine.Exited{Code: code}) })
	}
}

// end ends the process once. Its exit stays for an agent that looks for it later, as a supervisor keeps it in the
// product.
func (x *process) end(e taskmachine.Exited) {
	if x.dead || x.exit != nil {
		return
	}
	x.exit = &e
	if x.tell != nil && x.n.up() {
		x.tell(e)
	}
}

// await has the agent of now told of the process's exit, at once if it has ended already.
func (t *localTask) await() {
	x := t.l.n.runs[t.key()]
	agent := t.l.n.agent
	x.tell = func(e taskmachine.Exited) {
		agent.after(0, "exited", func() {
			if t.l.n.runs[t.key()] == x {
				t.apply(e)
				t.l.settle()
			}
		})
	}
	if x.exit != nil {
		x.tell(*x.exit)
	}
}

// recover finds the task again after a restart of the agent, as taskrunner does.
func (t *localTask) recover() {
	t.turn++
	x := t.l.n.runs[t.key()]
	ran := !t.status.State.StartedAt.IsZero()
	dead := t.status.Phase == taskmachine.Dead
	ran = ran && t.status.Phase != taskmachine.Backoff && t.status.Phase != taskmachine.Preparing && t.status.Phase != taskmachine.Starting
	t.status = taskmachine.Restore(t.status.State, t.status.Killed, x != nil)
	switch {
	case dead:
	case x != nil && x.exit != nil:
		t.l.later = append(t.l.later, func() { t.apply(taskmachine.RestoredExit(*x.exit)) })
	case x != nil:
		t.apply(taskmachine.Restored{})
	case ran: // it had a handle
		t.l.later = append(t.l.later, func() { t.apply(taskmachine.RestoreFailed{Reason: "not found"}) })
	default:
		t.l.later = append(t.l.later, func() {})
	}
}

// option reads a number of the task's configuration, where a fake driver's options stand.
func (t *localTask) option(name string) int {
	switch v := t.spec.Config[name].(type) {
	case int:
		return v
	case int64:
		return int(v)
	case int8:
		return int(v)
	case uint64:
		return int(v)
	case float64:
		return int(v)
	}
	return 0
}
