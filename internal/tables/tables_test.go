package tables_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover/internal/tables"
)

// TestNamesAreDistinct: who watches a table must not be woken by another one.
func TestNamesAreDistinct(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, name := range []string{
		tables.Jobs, tables.JobVersions, tables.JobSummaries, tables.Nodes, tables.Allocs, tables.Evals, tables.Deployments,
		tables.Namespaces, tables.NodePools, tables.SchedulerConfig, tables.Cluster, tables.Lessees,
		tables.Autopilot, tables.ScalingEvents, tables.JobSubmissions, tables.Services, tables.RootKeys, tables.Variables,
		tables.AdmissionRules, tables.Revocations,
		tables.FleetPools, tables.FleetInstances, tables.FleetCosts, tables.NodeAllocs, tables.JobAllocs, tables.JobEvals,
	} {
		require.NotEmpty(t, name)
		require.False(t, seen[name], name)
		seen[name] = true
	}
}

// TestJobKeysAreDistinct: ids and namespaces may have any character but the separator.
func TestJobKeysAreDistinct(t *testing.T) {
	t.Parallel()
	text := rapid.StringMatching(`[a-c/.\-]{0,4}`)
	rapid.Check(t, func(t *rapid.T) {
		ns1, id1, ns2, id2 := text.Draw(t, "ns1"), text.Draw(t, "id1"), text.Draw(t, "ns2"), text.Draw(t, "id2")
		require.Equal(t, ns1 == ns2 && id1 == id2, tables.JobKey(ns1, id1) == tables.JobKey(ns2, id2))
	})
}
