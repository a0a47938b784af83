package fsm

import (
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/control/command"
)

// runnerEvent tells of an allocation of a warm pool, as a runner. The filter keys are the environment, its job and the
// allocation.
func (e *entry) runnerEvent(a *drover.Allocation, kind command.Kind) drover.Event {
	env := environmentOf(a.JobID)
	key := execution.Key(a.Namespace, env)
	r := &execution.Runner{
		ID: key + "-" + a.ID, AllocID: a.ID, Environment: env, NodeID: a.NodeID, State: runnerState(a),
	}
	r.Namespace, _ = execution.SplitKey(key)
	if c := a.Claim; c != nil {
		r.ID, r.ClaimedAt, r.IdleTimeout = c.RunnerID, time.Unix(0, c.ClaimedAt).UTC(), c.IdleTimeout
		r.Labels, r.Env = c.Labels, c.Env
	}
	if a.AllocatedResources != nil {
		r.Ports = a.AllocatedResources.Shared.Ports
	}
	name := map[execution.RunnerState]string{
		execution.RunnerWarming: "RunnerWarming", execution.RunnerWarm: "RunnerWarm", execution.RunnerClaimed: "RunnerUpdated",
		execution.RunnerDraining: "RunnerDraining", execution.RunnerDestroyed: "RunnerDestroyed",
	}[r.State]
	if kind == command.KindClaimRunners || kind == command.KindRecordRunners && r.State == execution.RunnerClaimed {
		name = "RunnerClaimed"
	}
	return e.event(drover.TopicRunner, name, r.ID, a.Namespace, []string{env, a.JobID, a.ID}, "Runner", r)
}

// environmentOf is the id by which users know the environment that the job keeps; other jobs with pools have their own.
func environmentOf(jobID string) string {
	return strings.TrimPrefix(jobID, execution.EnvironmentJobPrefix)
}

// runnerState derives the runner's state from its allocation. The order matters: an ended runner stays destroyed even
// if it is claimed, and a claim counts from the moment it is logged.
func runnerState(a *drover.Allocation) execution.RunnerState {
	switch {
	case a.ClientTerminal():
		return execution.RunnerDestroyed
	case a.ServerTerminal():
		return execution.RunnerDraining
	case a.Claim != nil:
		return execution.RunnerClaimed
	case a.ClientStatus == drover.AllocClientRunning:
		return execution.RunnerWarm
	}
	return execution.RunnerWarming
}
