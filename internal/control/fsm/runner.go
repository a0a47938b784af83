package fsm

import (
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/command"
)

// tellExecutions tells what happened to executions. The filter keys are the runner, its environment and its allocation.
func (e *entry) tellExecutions(c *command.TellExecutions) {
	for i := range c.Events {
		x := &c.Events[i].Execution
		env := strings.TrimSuffix(x.RunnerID, "-"+x.AllocID)
		e.told = append(e.told, e.event(drover.TopicExecution, c.Events[i].Type, x.ID, c.Events[i].Namespace,
			[]string{x.RunnerID, env, x.AllocID}, "Execution", x))
	}
}

// runnerEvent tells of an allocation of a warm pool, as a runner. The filter keys are the environment, its job and the
// allocation.
func (e *entry) runnerEvent(a *drover.Allocation, kind command.Kind) drover.Event {
	env := environmentOf(a.JobID)
	r := &drover.Runner{
		ID: env + "-" + a.ID, AllocID: a.ID, Environment: env, NodeID: a.NodeID, State: runnerState(a),
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
	return e.event(drover.TopicRunner, name, r.ID, a.Namespace, []string{env, a.JobID, a.ID}, "Runner", r)
}

// environmentOf is the id by which users know the environment that the job keeps; other jobs with pools have their own.
func environmentOf(jobID string) string {
	return strings.TrimPrefix(jobID, drover.EnvironmentJobPrefix)
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
