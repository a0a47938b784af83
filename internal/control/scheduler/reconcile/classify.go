package reconcile

import (
	"slices"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/optional"
)

// sorted is a group's allocations, or its canaries, by what has to happen to them. Those that ended for good and those
// that are being stopped are in none of the lists.
type sorted struct {
	live       []*drover.Allocation // run or will run, where they are
	done       []*drover.Allocation // batch: ended well, not run again
	held       []*drover.Allocation // failed, not replaced (now): keep their name and their place in the count
	later      []laterFailure       // failed, replaced at a time; also in held
	reschedule []*drover.Allocation // failed, to replace now
	lost       []*drover.Allocation // on a node that is gone
	migrate    []*drover.Allocation // to move
	away       []*drover.Allocation // unknown, to be replaced meanwhile
	abandoned  []*drover.Allocation // canaries of a deployment that ended
	ranVersion bool                 // some allocation that is wanted is of the job's current version
}

// keep lists what stays in place.
func (s *sorted) keep() []*drover.Allocation { return append(slices.Clone(s.live), s.held...) }

// laterFailure is a failed allocation and when its reschedule policy lets it be replaced.
type laterFailure struct {
	alloc *drover.Allocation
	at    time.Time
}

// classify sorts a group's allocations, the canaries that wait for promotion apart from the rest, and marks those lost
// that were being stopped on a node that is gone.
func (r *Reconciler) classify(g *drover.TaskGroup, allocs []*drover.Allocation) (rest, canaries *sorted) {
	rest, canaries = &sorted{}, &sorted{}
	for _, a := range allocs {
		if !a.ServerTerminal() && a.Job != nil && a.Job.Version == r.Job.Version && a.Job.CreateIndex == r.Job.CreateIndex {
			rest.ranVersion = true
		}
		if r.deployments.waitingCanary(a) {
			r.classifyOne(canaries, g, a)
		} else {
			r.classifyOne(rest, g, a)
		}
	}
	return rest, canaries
}

// classifyOne puts an allocation into one list at most. The first case that applies wins: a drain before everything,
// then what was decided or happened, then what became of the node.
func (r *Reconciler) classifyOne(s *sorted, g *drover.TaskGroup, a *drover.Allocation) {
	switch {
	case r.drained(a):
		r.classifyDrained(s, g, a)
	case a.ServerTerminal():
		if !a.ClientTerminal() && r.Lost(a.NodeID) {
			r.Lose(a)
		}
	case r.deployments.abandonedCanary(a):
		s.abandoned = append(s.abandoned, a)
	case a.ClientTerminal():
		r.classifyEnded(s, g, a)
	case r.away(s, g, a):
	case r.Lost(a.NodeID):
		if g.PreventRescheduleOnLost && r.Node(a.NodeID) != nil && !optional.Value(a.DesiredTransition.Migrate) {
			s.live = append(s.live, a) // may still run there: the job's author wants it nowhere else, and nobody drains the node
		} else {
			s.lost = append(s.lost, a)
		}
	case optional.Value(a.DesiredTransition.Migrate):
		s.migrate = append(s.migrate, a)
	default:
		s.live = append(s.live, a)
	}
}

// classifyEnded sorts an allocation that ended by itself. A canary keeps its place in the set whatever its end: it has told
// what it was there to tell.
func (r *Reconciler) classifyEnded(s *sorted, g *drover.TaskGroup, a *drover.Allocation) {
	batch := r.Job.Type == drover.JobTypeBatch
	if batch && r.older(a) {
		return // a changed batch job runs again as a whole
	}
	switch a.ClientStatus {
	case drover.AllocClientComplete:
		switch {
		case batch && a.Index() < g.DesiredCount():
			s.done = append(s.done, a)
		case r.deployments.waitingCanary(a):
			s.held = append(s.held, a)
		}
	case drover.AllocClientLost:
		s.lost = append(s.lost, a)
	case drover.AllocClientFailed:
		if a.NextAllocation == "" {
			r.classifyFailed(s, g, a)
		}
	}
}

// older reports whether the allocation runs an earlier version or incarnation of the job.
func (r *Reconciler) older(a *drover.Allocation) bool {
	return a.Job != nil && (a.Job.CreateIndex != r.Job.CreateIndex || a.Job.Version < r.Job.Version)
}

// classifyFailed asks the policy, unless the deployment that the allocation belongs to says that it is not replaced.
func (r *Reconciler) classifyFailed(s *sorted, g *drover.TaskGroup, a *drover.Allocation) {
	x := reschedulingOf(a, policyOf(a, g), r.Now)
	switch {
	case !x.ever && !optional.Value(a.DesiredTransition.Reschedule):
		s.held = append(s.held, a)
	case !r.deployments.lets(a, r.Now):
		s.held = append(s.held, a)
		r.deployments.owe(a, x.at)
	case !x.at.After(r.Now.Add(rescheduleNowWindow)):
		s.reschedule = append(s.reschedule, a)
	default:
		s.held = append(s.held, a)
		s.later = append(s.later, laterFailure{a, x.at})
	}
}

// policyOf is the policy of the version that the allocation runs.
func policyOf(a *drover.Allocation, g *drover.TaskGroup) *drover.ReschedulePolicy {
	if a.Job != nil {
		if own := a.Job.Group(g.Name); own != nil {
			return own.ReschedulePolicy
		}
	}
	return g.ReschedulePolicy
}
