package self

import (
	nomadagent "github.com/drover-project/drover/internal/httpapi/nomad/agent"
	"github.com/drover-project/drover/internal/server/execseam"
	"github.com/drover-project/drover/internal/telemetry"
)

// Measure has the metrics of a server told: those of its state and of what leads by the leader alone.
func (c *Control) Measure(to *telemetry.Metrics) {
	to.Source(nomadagent.StateMetrics(execseam.State{Store: c.Store}, c.Servers.Leads))
	to.Source(c.Leader.Emit)
	to.Source(func(emit telemetry.Emit) {
		s := c.Log.Stats()
		emit("nomad.raft.appliedIndex", float64(s.AppliedIndex))
		emit("nomad.raft.lastIndex", float64(s.LastIndex))
		emit("nomad.nomad.state.snapshotIndex", float64(s.SnapshotIndex))
		emit("drover.server.leads", truth(c.Servers.Leads()))
		if c.Servers.Clustered() && c.Servers.Leads() {
			h := c.Servers.Operate().AutopilotHealth()
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
