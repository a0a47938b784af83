package progress

import (
	"maps"
	"slices"
	"time"

	"github.com/drover-project/drover"
)

// Renewed is the group's state with a progress deadline that begins now, if one had begun: the time of a pause, or of
// waiting for a promotion, does not count.
func Renewed(s *drover.DeploymentState, now int64) *drover.DeploymentState {
	next := *s
	if s.ProgressDeadline > 0 && !s.RequireProgressBy.IsZero() {
		next.RequireProgressBy = time.Unix(0, now).UTC().Add(s.ProgressDeadline)
	}
	return &next
}

// Counts reports whether the change of an allocation changes the counters of its deployment: it joins it, or its health is another one.
// old is nil if it is new.
func Counts(old, a *drover.Allocation) bool { return joins(old, a) || health(old) != health(a) }

func joins(old, a *drover.Allocation) bool { return old == nil || old.DeploymentID != a.DeploymentID }

// Counted is the allocation's deployment with its counters as they are with the change: placed, healthy, unhealthy, canaries, and the
// deadline. It is nil if there is no such deployment or group.
func Counted(before *drover.Deployment, old, a *drover.Allocation) *drover.Deployment {
	if before == nil || before.TaskGroups[a.TaskGroup] == nil {
		return nil
	}
	was, is, joined := health(old), health(a), joins(old, a)
	if joined {
		was = 0
	}
	d := *before
	d.TaskGroups = maps.Clone(before.TaskGroups)
	s := *before.TaskGroups[a.TaskGroup]
	d.TaskGroups[a.TaskGroup] = &s
	if joined {
		s.PlacedAllocs++
		if a.DeploymentStatus != nil && a.DeploymentStatus.Canary && !slices.Contains(s.PlacedCanaries, a.ID) {
			s.PlacedCanaries = append(slices.Clone(s.PlacedCanaries), a.ID)
		}
	}
	s.HealthyAllocs += delta(was, is, 1)
	s.UnhealthyAllocs += delta(was, is, -1)
	pushDeadline(&s, a, joined, is)
	return &d
}

// pushDeadline moves the deadline by which there must be progress: from the first placement, then from each that
// became healthy.
func pushDeadline(s *drover.DeploymentState, a *drover.Allocation, joined bool, health int) {
	if s.ProgressDeadline == 0 {
		return
	}
	var by time.Time
	switch {
	case health == 1 && a.DeploymentStatus != nil:
		by = a.DeploymentStatus.Timestamp.Add(s.ProgressDeadline)
	case joined && s.RequireProgressBy.IsZero():
		by = time.Unix(0, a.ModifyTime).UTC().Add(s.ProgressDeadline)
	}
	if by.After(s.RequireProgressBy) {
		s.RequireProgressBy = by
	}
}

// health is 1 for healthy, -1 for unhealthy, 0 for not yet known.
func health(a *drover.Allocation) int {
	switch {
	case a == nil || a.DeploymentStatus == nil || a.DeploymentStatus.Healthy == nil:
		return 0
	case *a.DeploymentStatus.Healthy:
		return 1
	}
	return -1
}

// delta returns by how much the number of allocations whose health is of changes when one goes from was to is: -1, 0 or
// 1.
func delta(was, is, of int) int {
	n := 0
	if was == of {
		n--
	}
	if is == of {
		n++
	}
	return n
}

// Healthy reports whether the allocation was found to be healthy.
func Healthy(a *drover.Allocation) bool { return health(a) == 1 }

// Judged reports whether it is known if the allocation is healthy.
func Judged(a *drover.Allocation) bool { return health(a) != 0 }

// AwaitsPromotion reports whether a group still has canaries to be promoted.
func AwaitsPromotion(d *drover.Deployment) bool {
	for _, s := range d.TaskGroups {
		if s.Unpromoted() {
			return true
		}
	}
	return false
}
