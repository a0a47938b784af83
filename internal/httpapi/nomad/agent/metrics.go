package agent

import (
	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi/nomad/answer"
	"github.com/drover-project/drover/internal/telemetry"
)

// usage is what a Snapshot may have besides: what allocations hold on a node.
type usage interface {
	Used(nodeID string) drover.Capacity
}

// StateMetrics is a telemetry source of what is derived from the state, under Nomad's names: jobs by status, their
// summaries, and what is allocated on each node. Servers that don't lead tell the state's index only: all have the same state.
// It costs a walk over jobs and nodes a reading.
func StateMetrics(state answer.State, leads func() bool) func(telemetry.Emit) {
	return func(emit telemetry.Emit) {
		s := state.Snapshot()
		emit("drover.state.index", float64(s.Index()))
		if !leads() {
			return
		}
		jobMetrics(emit, s)
		for n := range s.Nodes("") {
			nodeMetrics(emit, s, n)
		}
	}
}

// jobMetrics emits the counts of each job's groups, and how many jobs have which status. All three statuses are
// always there, so that a graph shows 0 and not a gap.
func jobMetrics(emit telemetry.Emit, s answer.Snapshot) {
	byStatus := map[string]int{drover.JobStatusPending: 0, drover.JobStatusRunning: 0, drover.JobStatusDead: 0}
	for j := range s.Jobs("*", "") {
		byStatus[j.Status]++
		summary := s.JobSummary(j.Namespace, j.ID)
		if summary == nil {
			continue
		}
		for group, n := range summary.Summary {
			for _, m := range []struct {
				name  string
				value int
			}{
				{"queued", n.Queued},
				{"complete", n.Complete},
				{"failed", n.Failed},
				{"running", n.Running},
				{"starting", n.Starting},
				{"lost", n.Lost},
				{"unknown", n.Unknown},
			} {
				emit("nomad.nomad.job_summary."+m.name, float64(m.value), "job", j.ID, "task_group", group, "namespace", j.Namespace)
			}
		}
	}
	for status, n := range byStatus {
		emit("nomad.nomad.job_status."+status, float64(n))
	}
}

// nodeMetrics emits what is allocated and free on a node, in MHz and MB. It emits nothing for snapshots that do not
// count usage.
func nodeMetrics(emit telemetry.Emit, s answer.Snapshot, n *drover.Node) {
	u, ok := s.(usage)
	if !ok {
		return
	}
	class := n.NodeClass
	if class == "" {
		class = "none"
	}
	labels := []string{
		"node_id", n.ID, "datacenter", n.Datacenter, "node_class", class, "node_pool", n.NodePool,
		"node_status", n.Status, "node_scheduling_eligibility", n.SchedulingEligibility,
	}
	used, total := u.Used(n.ID), n.Total()
	free := total.Sub(used)
	emit("nomad.client.allocated.cpu", float64(used.CPU), labels...)
	emit("nomad.client.allocated.memory", float64(used.MemoryMB), labels...)
	emit("nomad.client.allocated.disk", float64(used.DiskMB), labels...)
	emit("nomad.client.unallocated.cpu", float64(free.CPU), labels...)
	emit("nomad.client.unallocated.memory", float64(free.MemoryMB), labels...)
	emit("nomad.client.unallocated.disk", float64(free.DiskMB), labels...)
}
