package scheduler

import (
	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/scheduler/rank"
	"github.com/drover-project/drover/internal/quota"
)

// affords reports whether the quota lets one more allocation of the group be. What an exact one of several devices costs is only known
// when it is granted: see pays.
func (r *run) affords(g *drover.TaskGroup, x *GroupExplanation) bool {
	if r.account == nil {
		return true
	}
	return r.refuse(x, r.account.Exceeds(quota.Pool(r.Job), quota.Asked(g, r.terms.Oversubscribed)))
}

// pays takes what was granted off the quota, and reports whether there was as much.
func (r *run) pays(granted *drover.AllocatedResources, x *GroupExplanation) bool {
	if r.account == nil {
		return true
	}
	pool, cost := quota.Pool(r.Job), quota.Held(granted)
	if !r.refuse(x, r.account.Exceeds(pool, cost)) {
		return false
	}
	r.account.Add(pool, cost)
	return true
}

// refuse notes what exceeds the quota; it reports whether nothing does.
func (r *run) refuse(x *GroupExplanation, exceeds []string) bool {
	if len(exceeds) > 0 {
		x.quota, x.overQuota = r.account.Quota, exceeds
	}
	return len(exceeds) == 0
}

// affordsInstead reports whether the quota lets an allocation of the board's group be once a has ended.
func (r *run) affordsInstead(b *rank.Board, a *drover.Allocation) bool {
	if r.account == nil {
		return true
	}
	after := *r.account
	after.Used = after.Used.Sub(quota.Pool(a.Job), quota.Of(a))
	return len(after.Exceeds(quota.Pool(r.Job), quota.Asked(b.Group, r.terms.Oversubscribed))) == 0
}

// quotaReached says on the evaluation that waits what it waits for. Where no group waits for a node, none wakes it.
func (r *run) quotaReached(e *drover.Evaluation) {
	room := false
	for _, x := range r.groups {
		switch {
		case x.Failed == 0:
		case len(x.overQuota) > 0:
			e.QuotaLimitReached = x.quota
		default:
			room = true
		}
	}
	switch {
	case e.QuotaLimitReached == "":
	case room:
		e.EscapedComputedClass = true
	default:
		e.ClassEligibility, e.EscapedComputedClass = nil, false
	}
}
