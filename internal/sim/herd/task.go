package herd

import (
	"time"

	"github.com/drover-project/drover/internal/node/taskmachine"
)

// Process is a running task. It outlives the agent, and its exit waits for it.
type Process struct {
	n    *Machine
	Dead bool // the machine restarted, or it was forgotten
	Exit *taskmachine.Exited
	tell func(taskmachine.Exited) // the agent's wait; nil while there is none
}

// Key names the task by its allocation and its name.
func (t *Task) Key() string { return t.l.Alloc.ID + "/" + t.spec.Name }

// apply makes one step and performs its effects.
func (t *Task) apply(ev taskmachine.Event) {
	n := t.l.n
	before := t.Status.Phase
	next, effects := taskmachine.Step(t.view, t.Status, ev, n.Clock(), n.w.Rng.Float64())
	if !before.CanBecome(next.Phase) {
		n.w.Breach("task %s goes from %s to %s on %T", t.Key(), before, next.Phase, ev)
	}
	t.Status = next
	for _, e := range effects {
		t.perform(e)
	}
}

// answer gives an event later to the agent of now, if it still is the same and nothing newer began.
func (t *Task) answer(d time.Duration, turn uint64, f func() taskmachine.Event) {
	agent := t.l.n.Agent
	agent.After(d, "task", func() {
		if t.turn == turn {
			t.apply(f())
			t.l.Settle()
		}
	})
}

// perform starts the work that an effect of the task machine asks for. Its answer comes later, after a drawn time, and
// only if no newer work of the task has begun. Effects that begin no work of their own leave the turn as it was.
func (t *Task) perform(e taskmachine.Effect) {
	n := t.l.n
	t.turn++
	turn := t.turn
	switch e := e.(type) {
	case taskmachine.Prepare:
		t.answer(n.w.Between(time.Millisecond, 100*time.Millisecond), turn, func() taskmachine.Event {
			if n.Full {
				return taskmachine.PrepareFailed{Reason: "no space left on device", Recoverable: true}
			}
			return taskmachine.Prepared{}
		})
	case taskmachine.Launch:
		// A slow node takes up to half a minute to start a process.
		slowest := 500 * time.Millisecond
		if n.Slow {
			slowest = 30 * time.Second
		}
		fails := !n.Quiet() && n.w.Chance(t.option("startfail"))
		took := n.w.Between(time.Millisecond, slowest)
		if !fails { // it may run already when the agent dies before it knows
			n.Agent.After(took, "launch", t.launch)
		}
		t.answer(took+n.w.Between(0, 10*time.Millisecond), turn, func() taskmachine.Event {
			if fails {
				return taskmachine.StartFailed{Reason: "cannot start", Recoverable: n.w.Chance(50)}
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
		x := n.Runs[t.Key()]
		// The process may end at once, or only when it is killed after its timeout.
		die := e.Delay + n.w.Between(0, e.Timeout+time.Millisecond)
		n.Agent.After(die, "stop", func() {
			if x != nil {
				x.end(taskmachine.Exited{Signal: 15})
			}
		})
	case taskmachine.Wake:
		t.answer(e.Delay, turn, func() taskmachine.Event { return taskmachine.Due{} })
	case taskmachine.Destroy:
		t.turn--
		delete(n.Runs, t.Key())
	case taskmachine.Finish:
	}
}

// once checks that a warm runner never runs a second time.
func (t *Task) once() {
	n := t.l.n
	if t.l.group.Pool != nil && n.ran[t.l.Alloc.ID] {
		n.w.Breach("warm runner %s is started a second time", t.l.Alloc.ID)
	}
	n.ran[t.l.Alloc.ID] = true
}

// launch starts the process.
func (t *Task) launch() {
	n := t.l.n
	if old := n.Runs[t.Key()]; old != nil && !old.Dead && old.Exit == nil {
		n.w.Breach("task %s is started while it runs", t.Key())
	}
	n.Begins(t.Key())
	x := &Process{n: n}
	n.Runs[t.Key()] = x
	ends, code := time.Duration(t.option("run"))*time.Second, 0
	if !n.Quiet() && n.w.Chance(t.option("fail")) {
		ends, code = n.w.Between(time.Nanosecond, time.Minute), 1 // 0 would be a task that runs for ever
	}
	switch late := time.Duration(t.option("late")) * time.Second; {
	case t.option("broken") > 0 && !n.Mended():
		ends, code = n.w.Between(time.Nanosecond, 2*time.Second), 1
	case late > 0 && !n.Quiet():
		ends, code = late+n.w.Between(0, 5*time.Second), 1
	}
	if ends > 0 {
		n.w.After(ends, "exit", func() { x.end(taskmachine.Exited{Code: code}) })
	}
}

// end ends the process once. Its exit stays for an agent that looks for it later, as a supervisor keeps it in the
// product.
func (x *Process) end(e taskmachine.Exited) {
	if x.Dead || x.Exit != nil {
		return
	}
	x.Exit = &e
	if x.tell != nil && x.n.Up() {
		x.tell(e)
	}
}

// await has the agent of now told of the process's exit, at once if it has ended already.
func (t *Task) await() {
	x := t.l.n.Runs[t.Key()]
	agent := t.l.n.Agent
	x.tell = func(e taskmachine.Exited) {
		agent.After(0, "exited", func() {
			if t.l.n.Runs[t.Key()] == x {
				t.apply(e)
				t.l.Settle()
			}
		})
	}
	if x.Exit != nil {
		x.tell(*x.Exit)
	}
}

// recover finds the task again after a restart of the agent, as taskrunner does.
func (t *Task) recover() {
	t.turn++
	x := t.l.n.Runs[t.Key()]
	ran := !t.Status.State.StartedAt.IsZero()
	dead := t.Status.Phase == taskmachine.Dead
	ran = ran && t.Status.Phase != taskmachine.Backoff && t.Status.Phase != taskmachine.Preparing && t.Status.Phase != taskmachine.Starting
	t.Status = taskmachine.Restore(t.Status.State, t.Status.Killed, x != nil)
	switch {
	case dead:
	case x != nil && x.Exit != nil:
		t.l.later = append(t.l.later, func() { t.apply(taskmachine.RestoredExit(*x.Exit)) })
	case x != nil:
		t.apply(taskmachine.Restored{})
	case ran: // it had a handle
		t.l.later = append(t.l.later, func() { t.apply(taskmachine.RestoreFailed{Reason: "not found"}) })
	default:
		t.l.later = append(t.l.later, func() {})
	}
}

// option reads a number of the task's configuration, where a fake driver's options stand.
func (t *Task) option(name string) int {
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
