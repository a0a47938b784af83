package nomad_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/httpapi/nomad/agent"
)

func TestStateMetrics(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	leads := false
	w.agent.metrics.Source(agent.StateMetrics(w.cfg.State, func() bool { return leads }))
	body := w.do("GET", "/v1/metrics?format=prometheus", "").Body.String()
	require.Contains(t, body, "drover_state_index ")
	require.NotContains(t, body, "nomad_nomad_job_", "others lead, and say it")
	leads = true
	body = w.do("GET", "/v1/metrics?format=prometheus", "").Body.String()
	require.Contains(t, body, `nomad_nomad_job_summary_running{job="web",namespace="default",task_group="g"} 1`)
	require.Contains(t, body, "nomad_nomad_job_status_running 1\n")
	require.Contains(t, body, `nomad_client_unallocated_disk{datacenter="dc1",node_class="big",node_id="`+nodeID+
		`",node_pool="default",node_scheduling_eligibility="eligible",node_status="ready"} -300`)
}
