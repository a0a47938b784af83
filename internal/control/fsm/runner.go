package fsm

import (
	"time"

	"drover"
	"drover/internal/control/command"
)

// runnerEvent tells of an allocation of a warm pool, as a runner. Its key is the runner's id once it is claimed, the
// allocation's before; the filter keys are the environment and the allocation.
func (e *entry) runnerEvent(a *drover.Allocation, kind command.Kind) drover.Event {
	r := &drover.Runner{
		ID: a.ID, AllocID: a.ID, Environment: a.JobID, NodeID: a.NodeID, State: runnerState(a),
	}
	if c := a.Claim; c != nil {
		r.ID, r.ClaimedAt, r.IdleTimeout = c.RunnerID, time.Unix(0, c.ClaimedAt).UTC(), c.IdleTimeout
		r.Labels, r.Env = c.Labels, c.Env
	}
	if a.AllocatedResources != nil {
		r.Ports = a.AllocatedResources.Shared.Ports
	}
	name := map[drover.RunnerState]string{
		drover.RunnerWarming: "RunnerWarming", drover.RunnerWarm: "RunnerWarm", drover.RunnerClaimed: "RunnerUpdated",
		drover.RunnerDraining: "RunnerDraining", drover.RunnerDestroyed: "RunnerDestroyed",
	}[r.State]
	if kind == command.KindClaimRunners {
		name = "RunnerClaimed"
	}
	return e.event(drover.TopicRunner, name, r.ID, a.Namespace, []string{a.JobID, a.ID}, "Runner", r)
}

func runnerState(a *drover.Allocation) drover.RunnerState {
	switch {
	case a.ClientTerminal():
		return drover.RunnerDestroyed
	case a.ServerTerminal():
		return drover.RunnerDraining
	case a.Claim != nil:
		return drover.RunnerClaimed
	case a.ClientStatus == drover.AllocClientRunning:
		return drover.RunnerWarm
	}
	return drover.RunnerWarming
}
