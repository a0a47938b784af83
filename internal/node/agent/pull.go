package agent

import (
	"context"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/node/allocrunner"
)

// pullWait is how long control may hold a question without news. It is Nomad's default for blocking queries.
const (
	pullWait = 5 * time.Minute
	pullPace = 5 * time.Millisecond // between two questions: under load the answers carry more each
	// maxBehind is how often an answer older than the last is not believed of a server that is alone; then it was put back to an
	// older state.
	maxBehind = 8
)

// pull keeps asking what control wants, and does it.
func (a *Agent) pull(ctx context.Context) {
	select {
	case <-a.known:
	case <-ctx.Done():
		return
	}
	behind := 0
	pause := backoff{clock: a.clock, max: 5 * time.Second}
	for ctx.Err() == nil {
		asked := a.clock.Now()
		assignment, err := a.control.Pull(ctx, a.identity.ID, a.sight.Now(), pullWait)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			switch drover.CodeOf(err) {
			// Control does not know the node: it lost its state, or removed the node. After a registration all is asked
			// anew.
			case drover.NotFound:
				a.again.Send()
				a.sight.Forget()
			default:
				a.log.Warn("asking control for work failed, trying again", "error", err)
			}
			pause.wait(ctx)
			continue
		}
		seen := a.sight.Now()
		ok, news := a.sight.Take(assignment, behind >= maxBehind)
		if !ok {
			if behind++; behind == maxBehind {
				a.log.Warn("control's state is older than what this node has seen of it, and stays so",
					"index", assignment.Index, "state", assignment.State, "age", assignment.Age, "seen", seen)
			}
			pause.wait(ctx)
			continue
		}
		behind = 0
		pause.reset()
		a.meta.Store(&assignment.Meta)
		if err := a.signers.take(assignment); err != nil {
			a.log.Warn("which images have to be signed is forgotten if the agent ends", "error", err)
		}
		if news && !a.take(assignment) {
			a.sight.Forget()
		}
		once(a.contacted)
		if early := pullPace - a.clock.Now().Sub(asked); early > 0 {
			clock.Sleep(ctx, a.clock, early)
		}
	}
}

// take makes the node do what control wants: start what is new, tell the rest, end what is not listed. It reports whether it could: a
// node that does not have an allocation of which it is not told anything has to hear all.
func (a *Agent) take(assignment exchange.Assignment) bool {
	if a.volumes.Want(assignment.Volumes) { // before anything starts that would mount one
		a.offerVolumes()
	}
	listed := make(map[string]bool, len(assignment.Allocs)+len(assignment.Same))
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, id := range assignment.Same {
		if a.allocs[id] == nil && !a.refused[id] {
			return false
		}
		listed[id] = true
	}
	for _, id := range assignment.Same {
		if e := a.allocs[id]; e != nil {
			a.remind(e)
		}
	}
	for _, alloc := range assignment.Allocs {
		listed[alloc.ID] = true
		if e := a.allocs[alloc.ID]; e != nil {
			a.tell(e, alloc)
		} else if !a.refused[alloc.ID] {
			a.admit(alloc)
		}
	}
	for id, e := range a.allocs {
		if listed[id] || e.unlisted {
			continue
		}
		e.unlisted = true
		a.pusher.forget(id)
		e.runner.Remove(false)
	}
	for id := range a.refused {
		if !listed[id] {
			delete(a.refused, id)
			a.pusher.forget(id)
		}
	}
	a.collect.Send()
	return true
}

// remind says once more that an allocation has ended that control still wants: it does not know it.
func (a *Agent) remind(e *entry) {
	if v := e.runner.View(); v.Ended() {
		a.pusher.add(v.Update)
	}
}

// tell gives a running allocation its newer version; one that has ended says so again, as control does not know it.
func (a *Agent) tell(e *entry, alloc *drover.Allocation) {
	v := e.runner.View()
	a.pusher.learn(alloc)
	a.refills.Learn(alloc)
	switch {
	case v.Alloc.AllocModifyIndex == alloc.AllocModifyIndex:
	case released(alloc) && !released(v.Alloc):
		a.stops.add(func() { e.runner.Update(alloc) })
	default:
		e.runner.Update(alloc)
	}
	if alloc.ClientStatus == drover.AllocClientUnknown { // it lost sight of us
		a.pusher.know(alloc)
	}
	if (v.Ended() || alloc.ClientStatus == drover.AllocClientUnknown) && v.Update.ClientStatus != alloc.ClientStatus {
		a.pusher.add(v.Update)
	}
}

// admit starts an allocation that the node does not have.
func (a *Agent) admit(alloc *drover.Allocation) {
	a.pusher.know(alloc)
	if alloc.ClientTerminal() {
		return
	}
	if alloc.ServerTerminal() {
		a.refuse(alloc, drover.AllocClientComplete, "It was stopped before it started")
		return
	}
	if why := a.mustNotStart(alloc); why != "" {
		a.refuse(alloc, drover.AllocClientFailed, why)
		return
	}
	dir, err := a.root.Dir(alloc.ID)
	if err != nil {
		a.refuse(alloc, drover.AllocClientFailed, err.Error())
		return
	}
	r, err := allocrunner.New(a.runnerCfg, alloc, dir)
	if err != nil {
		a.refuse(alloc, drover.AllocClientFailed, err.Error())
		return
	}
	a.start(r, alloc.ID, func(life context.Context) { a.refills.Await(life, alloc) })
}

// mustNotStart returns why the allocation may not start, or "". A warm runner that was used, or ran once, serves nobody
// else afterwards. One that this node does not remember may have run here before, so it counts as lost.
func (a *Agent) mustNotStart(alloc *drover.Allocation) string {
	if alloc.Job == nil {
		return ""
	}
	g := alloc.Job.Group(alloc.TaskGroup)
	if g != nil && g.Pool != nil && (alloc.Claim != nil || alloc.ClientStatus == drover.AllocClientRunning) {
		return "The node does not remember this runner; it is never started a second time"
	}
	return ""
}

// refuse reports an allocation that is not started as ended, with all of its tasks. The reason becomes its description,
// for people. It is remembered while control lists it, so that it is reported once. a.mu is held.
func (a *Agent) refuse(alloc *drover.Allocation, status, why string) {
	a.refused[alloc.ID] = true
	a.log.Warn("an allocation is not started", "alloc", alloc.ID, "reason", why)
	states := map[string]*drover.TaskState{}
	now := a.clock.Now()
	if alloc.Job != nil {
		if g := alloc.Job.Group(alloc.TaskGroup); g != nil {
			for _, t := range g.Tasks {
				states[t.Name] = &drover.TaskState{State: drover.TaskStateDead, Failed: status == drover.AllocClientFailed, FinishedAt: now}
			}
		}
	}
	a.pusher.add(exchange.AllocUpdate{ID: alloc.ID, ClientStatus: status, ClientDescription: why, TaskStates: states, Time: now.UnixNano()})
}
