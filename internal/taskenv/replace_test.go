package taskenv

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/network"
)

// TestReplaceTouchesNothingElse: a text without references stays, and "$${" is the only escape.
func TestReplaceTouchesNothingElse(t *testing.T) {
	t.Parallel()
	e := Build(input())
	rapid.Check(t, func(t *rapid.T) {
		plain := strings.ReplaceAll(rapid.String().Draw(t, "text"), "${", "")
		if strings.Contains(plain, "${") {
			t.Skip("the removal made another one")
		}
		require.Equal(t, plain, e.Replace(plain))
		if !strings.HasSuffix(plain, "$") {
			require.Equal(t, plain+"web"+plain, e.Replace(plain+"${NOMAD_TASK_NAME}"+plain))
			require.Equal(t, plain+"${NOMAD_TASK_NAME}", e.Replace(plain+"$${NOMAD_TASK_NAME}"))
		}
	})
}

func TestValuesOfAllKindsAreInterpolated(t *testing.T) {
	t.Parallel()
	e := Build(input())
	for name, c := range map[string]struct{ in, want any }{
		"a number":        {7, 7},
		"a list of texts": {[]string{"${NOMAD_DC}", "x"}, []any{"dc1", "x"}},
		"blocks":          {[]map[string]any{{"a": "${NOMAD_DC}"}}, []any{map[string]any{"a": "dc1"}}},
		"a map of texts":  {map[string]string{"${NOMAD_DC}": "${node.class}"}, map[string]any{"dc1": "c"}},
		"nothing":         {nil, nil},
		"nested":          {[]any{[]any{"${NOMAD_DC}"}}, []any{[]any{"dc1"}}},
	} {
		require.Empty(t, cmp.Diff(c.want, e.ReplaceAny(c.in)), name)
	}
	config := map[string]any{"a": []any{"${NOMAD_DC}"}}
	e.ReplaceConfig(config)
	require.Equal(t, map[string]any{"a": []any{"${NOMAD_DC}"}}, config, "the job is not changed")
}

func TestWithWinsAndLeavesTheFirst(t *testing.T) {
	t.Parallel()
	e := Build(input())
	with := e.With(map[string]string{"NOMAD_DC": "other", "NEW": "x"})
	require.Equal(t, "other x", with.Replace("${NOMAD_DC} ${NEW}"))
	require.Equal(t, "dc1 ${NEW}", e.Replace("${NOMAD_DC} ${NEW}"))
}

func TestWhatATaskIsAskedForStandsInForItsPlacement(t *testing.T) {
	t.Parallel()
	in := input()
	in.Alloc.AllocatedResources = nil
	in.Task.Resources = &drover.Resources{CPU: 5, MemoryMB: 6, MemoryMaxMB: 7}
	vars := Build(in).Vars()
	require.Equal(t, []string{"5", "6", "7"}, []string{vars["NOMAD_CPU_LIMIT"], vars["NOMAD_MEMORY_LIMIT"], vars["NOMAD_MEMORY_MAX_LIMIT"]})
	require.NotContains(t, vars, "NOMAD_CPU_CORES")
	require.NotContains(t, vars, "NOMAD_PORT_http_1")
}

// TestPortsOfATask: jobs in the old form have their networks in the tasks.
func TestPortsOfATask(t *testing.T) {
	t.Parallel()
	in := input()
	in.Alloc.AllocatedResources.Tasks["web"].Networks = []*network.Resource{{
		IP: "10.0.0.9", ReservedPorts: []network.Port{{Label: "ssh", Value: 22}}, DynamicPorts: []network.Port{{Label: "a-b", Value: 30_000}},
	}}
	vars := Build(in).Vars()
	require.Equal(t, "10.0.0.9:22", vars["NOMAD_ADDR_web_ssh"])
	require.Equal(t, "10.0.0.9", vars["NOMAD_IP_web_a_b"])
	require.Equal(t, "30000", vars["NOMAD_PORT_web_a_b"])
}

func TestKeysOfOursAreCleaned(t *testing.T) {
	t.Parallel()
	in := input()
	in.Task.Env = map[string]string{"NOMAD_META_my-key": "1", "my-key": "2", "P_${NOMAD_TASK_NAME}": "3"}
	vars := Build(in).Vars()
	require.Equal(t, []string{"1", "2", "3"}, []string{vars["NOMAD_META_my_key"], vars["my-key"], vars["P_web"]})
}

func TestATaskOfADispatchedJobKnowsItsParent(t *testing.T) {
	t.Parallel()
	in := input()
	in.Alloc.Job.ParentID = "parent"
	in.Node, in.Alloc.Name = nil, "no-index"
	vars := Build(in).Vars()
	require.Equal(t, "parent", vars["NOMAD_JOB_PARENT_ID"])
	require.NotContains(t, vars, "NOMAD_DC")
	require.Empty(t, vars["NOMAD_ALLOC_INDEX"])
}
