package rawexec

import (
	"testing"

	"github.com/drover-project/drover/internal/node/driver/drivertest"
)

// TestNomadsKeys: those of Nomad's raw_exec driver 2.0: drivers/rawexec, taskConfigSpec.
func TestNomadsKeys(t *testing.T) {
	t.Parallel()
	drivertest.WalkKeys(t, []drivertest.Key{
		{Name: "args", With: []any{"a"}},
		{Name: "cgroup_v1_override", With: []any{map[string]any{"pids": "a"}}},
		{Name: "cgroup_v2_override", With: "a"},
		{Name: "command", With: "b"},
		{Name: "denied_envvars", With: []any{"A"}},
		{Name: "oom_score_adj", With: 5},
		{Name: "work_dir", With: "/a"},
	}, map[string]any{"command": "a"}, func(config map[string]any) (any, error) { return parse(config) }, Keys(), []string{"pids_limit"})
}
