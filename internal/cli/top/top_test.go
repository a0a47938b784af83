package top_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/cli/clitest"
)

func world() map[string]string {
	return map[string]string{
		"GET /v1/nodes": `[
			{"ID": "n2", "Name": "b", "NodePool": "gpu", "Status": "down"},
			{"ID": "n1", "Name": "a", "NodePool": "default", "Status": "ready", "SchedulingEligibility": "eligible"},
			{"ID": "n3", "Name": "c", "NodePool": "default", "Status": "ready", "Drain": true}]`,
		"GET /v1/client/stats": `{"CPU": [{"TotalPercent": 50}, {"TotalPercent": 100}], "Memory": {"Used": 512, "Total": 2048},
			"AllocDirStats": {"Used": 1, "Size": 1048576}}`,
		"GET /v1/jobs": `[
			{"ID": "fine", "Status": "running", "JobSummary": {"Summary": {"g": {"Running": 5}}}},
			{"ID": "web", "Namespace": "dev", "Status": "running",
				"JobSummary": {"Summary": {"g": {"Queued": 2, "Running": 1}, "h": {"Failed": 1}}}},
			{"ID": "over", "Status": "dead", "JobSummary": {"Summary": {"g": {"Failed": 9}}}}]`,
		"GET /v1/environments":            `[{"id": "python", "namespace": "default"}]`,
		"GET /v1/environment/python/pool": `{"size": 3, "warm": 2, "claimed": 1, "lastError": "no room"}`,
	}
}

func TestAClusterAtAGlance(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, world())
	api.Check(clitest.Case{Args: "top", Out: []string{
		"a n1 default ready 75 % of 2 25 % of 2.0 KiB 0 % of 1.0 MiB\n", "b n2 gpu down - - -\n", "c n3 default draining 75 %",
		"web dev 2 0 1 1 0 0\n", "python 3 2 1 no room\n",
	}, Not: []string{"fine", "over", "\x1b"}})
	api.Check(clitest.Case{Args: "top -n 2 -interval 100ms", Out: []string{"Environment", "Environment"}})
	api.Check(
		clitest.Case{Args: "top -interval 1ms", Code: 2, Err: []string{"-interval must be at least 100ms"}},
		clitest.Case{Args: "top -n -1", Code: 2, Err: []string{"-n not negative"}},
	)
	api.Set("GET /v1/jobs", `[{"ID": "fine", "Status": "running", "JobSummary": {"Summary": {"g": {"Running": 5}}}}]`)
	api.Set("GET /v1/nodes", "! 403 Permission denied")
	api.Check(clitest.Case{Args: "top", Out: []string{
		"Nodes\nPermission denied\n", "None of 1 job; 5 running allocations.",
	}})
	api.Set("GET /v1/client/stats", "! 500 away")
	api.Set("GET /v1/jobs", "! 403 Permission denied")
	api.Set("GET /v1/environments", "! 403 Permission denied")
	api.Check(clitest.Case{Args: "top", Code: 1, Err: []string{"Permission denied"}, Not: []string{"Nodes"}})
}

// TestManyAreCounted: neither the table nor the requests grow with the cluster.
func TestManyAreCounted(t *testing.T) {
	t.Parallel()
	answers := world()
	var nodes []string
	for i := range 30 {
		nodes = append(nodes, fmt.Sprintf(`{"ID": "n%d", "Name": "n%02d", "Status": "ready"}`, i, i))
	}
	answers["GET /v1/nodes"] = "[" + strings.Join(nodes, ",") + "]"
	api := clitest.Serve(t, answers)
	api.Check(clitest.Case{Args: "top", Out: []string{"n19 ", "… and 10 more\n"}, Not: []string{"n20 "}})
	api.Asked()
	api.Run("top")
	require.Equal(t, 20, strings.Count(strings.Join(api.Asked(), "\n"), "/v1/client/stats?"))
}

func TestWhoLeavesIsNotTold(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, world())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Equal(t, 130, api.RunContext(ctx, "top").Code)
}
