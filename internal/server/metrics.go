package server

import (
	nomadagent "github.com/drover-project/drover/internal/httpapi/nomad/agent"
	"github.com/drover-project/drover/internal/telemetry"
)

// measureServer has the metrics of a server told: those of its state and of what leads by the leader alone.
func (a *Agent) measureServer() {
	c := a.control
	a.metrics.Source(nomadagent.StateMetrics(nomadState{c.store}, c.servers.Leads))
	a.metrics.Source(c.leader.Emit)
	a.metrics.Source(func(emit telemetry.Emit) {
		s := c.log.Stats()
		emit("nomad.raft.appliedIndex", float64(s.AppliedIndex))
		emit("nomad.raft.lastIndex", float64(s.LastIndex))
		emit("nomad.nomad.state.snapshotIndex", float64(s.SnapshotIndex))
		emit("drover.server.leads", truth(c.servers.Leads()))
		if c.servers.Clustered() && c.servers.Leads() {
			h := c.servers.Operate().AutopilotHealth()
			emit("nomad.nomad.autopilot.healthy", truth(h.Healthy))
			emit("nomad.nomad.autopilot.failure_tolerance", float64(h.FailureTolerance))
		}
	})
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
