package reconcile

import (
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/scheduler/draft"
)

// away deals with an allocation that cannot be seen: its node is disconnected, or is back and has not said yet what
// became of it. While it is not lost it is unknown, and by default it is replaced meanwhile. It reports whether that
// is all there is to do.
func (r *Reconciler) away(s *sorted, g *drover.TaskGroup, a *drover.Allocation) bool {
	n, after := r.Node(a.NodeID), g.LostAfter()
	unknown := a.ClientStatus == drover.AllocClientUnknown
	switch {
	case n == nil || after == 0:
		return false
	case !unknown && n.Status != drover.NodeStatusDisconnected:
		return false
	case unknown && r.Lost(a.NodeID) && !time.Unix(0, a.UnknownSince).Add(after).After(r.Now):
		return false
	}
	if !unknown {
		r.MarkUnknown(a, r.Wake(r.Now.Add(after), drover.TriggerDisconnectTimeout, "created for delayed disconnect timeout"))
		r.Updates(g.Name).Disconnect++
	}
	if g.Disconnect.Replace != nil && !*g.Disconnect.Replace {
		s.live = append(s.live, a)
	} else {
		s.away = append(s.away, a)
	}
	return true
}

// reconnect decides between allocations that came back and what replaced them meanwhile: one of the two ends.
func (r *Reconciler) reconnect(g *drover.TaskGroup, s *sorted, allocs []*drover.Allocation, u *drover.DesiredUpdates) {
	if g.LostAfter() == 0 {
		return
	}
	byID, live := map[string]*drover.Allocation{}, map[*drover.Allocation]bool{}
	for _, a := range allocs {
		byID[a.ID] = a
	}
	for _, a := range s.live {
		live[a] = true
	}
	for _, a := range s.live {
		replacement := a
		for replacement != nil && (replacement == a || !live[replacement]) && replacement.NextAllocation != "" {
			replacement = byID[replacement.NextAllocation]
		}
		if a.NextAllocation == "" || a.ClientStatus == drover.AllocClientUnknown || !live[a] || replacement == nil ||
			replacement == a || !live[replacement] {
			continue
		}
		loser := a
		if keepsOriginal(g.Disconnect.Reconcile, a, replacement) {
			loser = replacement
		}
		r.End(loser, draft.WhyReconnected)
		live[loser] = false
		u.Stop++
		u.Reconnect++
	}
	keep := s.live[:0:0]
	for _, a := range s.live {
		if live[a] {
			keep = append(keep, a)
		}
	}
	s.live = keep
}

// keepsOriginal reports which of two goes on. A newer version of the job always wins, and what runs over what does not.
func keepsOriginal(strategy string, original, replacement *drover.Allocation) bool {
	runs := func(a *drover.Allocation) bool { return a.ClientStatus == drover.AllocClientRunning }
	switch {
	case original.Version() != replacement.Version():
		return original.Version() > replacement.Version()
	case runs(original) != runs(replacement):
		return runs(original)
	}
	switch strategy {
	case drover.ReconcileKeepOriginal:
		return true
	case drover.ReconcileKeepReplacement:
		return false
	case drover.ReconcileLongestRunning:
		return !startedAt(original).After(startedAt(replacement))
	}
	return placementScore(original) >= placementScore(replacement)
}

// startedAt is when the first task started.
func startedAt(a *drover.Allocation) (first time.Time) {
	for _, t := range a.TaskStates {
		if !t.StartedAt.IsZero() && (first.IsZero() || t.StartedAt.Before(first)) {
			first = t.StartedAt
		}
	}
	return first
}

// placementScore is how well the node suited the allocation when it was placed; 0 if that is not known.
func placementScore(a *drover.Allocation) float64 {
	if a.Metrics != nil {
		for _, m := range a.Metrics.ScoreMetaData {
			if m.NodeID == a.NodeID {
				return m.NormScore
			}
		}
	}
	return 0
}
