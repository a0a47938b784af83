package assignment

import (
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/exchange"
)

// reaction says why the scheduler has to look at the job j (nil if it is gone) of a when the node reports u; "" if it need not.
// An update that only frees capacity wakes the evaluations that wait for it, without a look at this job.
func reaction(a *drover.Allocation, u *exchange.AllocUpdate, j *drover.Job) string {
	ends := terminal(u.ClientStatus)
	switch {
	case j == nil && !ends && !a.ServerTerminal():
		return drover.TriggerJobDeregister // it runs, and nobody wants it
	case j == nil:
		return ""
	case a.ClientStatus == drover.AllocClientUnknown && u.ClientStatus != drover.AllocClientUnknown:
		return drover.TriggerReconnect // what replaced it may have to go, even if it has ended
	case !ends || a.ClientTerminal():
		return ""
	}
	if g := j.Group(a.TaskGroup); g != nil && g.Pool != nil {
		return poolReaction(a, g)
	}
	if a.ServerTerminal() {
		return ""
	}
	if u.ClientStatus == drover.AllocClientComplete && (j.Type == drover.JobTypeBatch || j.Type == drover.JobTypeSysBatch) {
		return "" // done
	}
	return drover.TriggerAllocFailure
}

// poolReaction: a warm runner that ended is to be replaced; a claimed one only makes room under the pool's bound.
func poolReaction(a *drover.Allocation, g *drover.TaskGroup) string {
	if (a.Claim == nil && !a.ServerTerminal()) || g.Pool.MaxRunners > 0 {
		return drover.TriggerAllocFailure
	}
	return ""
}

// becameWarm reports whether a runner of a pool that may be rolling out begins to run.
func becameWarm(a *drover.Allocation, u *exchange.AllocUpdate, j *drover.Job) bool {
	if j == nil || j.Version == 0 || a.ClientStatus != drover.AllocClientPending || u.ClientStatus != drover.AllocClientRunning {
		return false
	}
	g := j.Group(a.TaskGroup)
	return g != nil && g.Pool != nil
}

// rollouts remembers which jobs have unclaimed runners of older versions, which the next steps of a roll-out end.
type rollouts map[drover.NamespacedID]bool

// out reports whether the job has such runners. It looks through the job's allocations once and remembers the answer.
func (r rollouts) out(s *store.Snapshot, j *drover.Job) bool {
	old, known := r[j.Key()]
	if known {
		return old
	}
	for a := range s.ActiveAllocationsByJob(j.Namespace, j.ID) {
		if a.Claim == nil && !a.Terminal() && a.Job != nil && a.Version() != j.Version {
			old = true
			break
		}
	}
	r[j.Key()] = old
	return old
}

// terminal reports whether a client status says that the allocation will not run any more.
func terminal(clientStatus string) bool {
	switch clientStatus {
	case drover.AllocClientComplete, drover.AllocClientFailed, drover.AllocClientLost:
		return true
	}
	return false
}

// ended completes the report of an allocation that ended: each of its tasks is dead and has the time at which it
// ended, so that the scheduler can count delays from there. Reports that lack it come from nodes that could not even
// set the allocation up.
func ended(a *drover.Allocation, u exchange.AllocUpdate, now int64) exchange.AllocUpdate {
	if !terminal(u.ClientStatus) || a.ClientTerminal() || hasEnd(u.TaskStates) || hasEnd(a.TaskStates) {
		return u
	}
	at := u.Time
	if at == 0 {
		at = now
	}
	known := u.TaskStates
	if len(known) == 0 {
		known = a.TaskStates
	}
	u.TaskStates = map[string]*drover.TaskState{}
	for name, t := range known {
		u.TaskStates[name] = dead(t, u.ClientStatus, at)
	}
	if len(known) == 0 && a.Job != nil && a.Job.Group(a.TaskGroup) != nil {
		for _, t := range a.Job.Group(a.TaskGroup).Tasks {
			u.TaskStates[t.Name] = dead(&drover.TaskState{}, u.ClientStatus, at)
		}
	}
	return u
}

// dead returns a copy of t that ended at the time, in Unix nanoseconds. A failed allocation makes its task failed as
// well.
func dead(t *drover.TaskState, status string, at int64) *drover.TaskState {
	d := *t
	d.State, d.FinishedAt = drover.TaskStateDead, time.Unix(0, at).UTC()
	d.Failed = d.Failed || status == drover.AllocClientFailed
	return &d
}

// hasEnd reports whether any task has the time of its end, which is enough for the scheduler's delays.
func hasEnd(states map[string]*drover.TaskState) bool {
	for _, t := range states {
		if !t.FinishedAt.IsZero() {
			return true
		}
	}
	return false
}
