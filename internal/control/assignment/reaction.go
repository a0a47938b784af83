package assignment

import "drover"

// reaction says why the scheduler has to look at the job j (nil if it is gone) of a when the node reports u; "" if it
// need not: what only frees capacity wakes those who wait for it, without a look at this job.
func reaction(a *drover.Allocation, u *drover.AllocUpdate, j *drover.Job) string {
	ends := terminal(u.ClientStatus)
	switch {
	case j == nil && !ends && !a.ServerTerminal():
		return drover.TriggerJobDeregister // it runs, and nobody wants it
	case j == nil:
		return ""
	case a.ClientStatus == drover.AllocClientUnknown && !ends:
		return drover.TriggerReconnect
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

func terminal(clientStatus string) bool {
	switch clientStatus {
	case drover.AllocClientComplete, drover.AllocClientFailed, drover.AllocClientLost:
		return true
	}
	return false
}
