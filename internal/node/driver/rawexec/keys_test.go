package rawexec_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/cgroup"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/drivertest"
	"github.com/drover-project/drover/internal/node/driver/rawexec"
	"github.com/drover-project/drover/internal/validation"
)

// printed starts a script and returns what it printed.
func printed(t *testing.T, cfg rawexec.Config, config map[string]any, script string, change ...func(*driver.Spec)) string {
	t.Helper()
	d := rawexec.New(cfg)
	config["command"], config["args"] = "/bin/sh", []any{"-c", script}
	spec := drivertest.Spec(t, t.TempDir(), config)
	for _, c := range change {
		c(&spec)
	}
	h := drivertest.Start(t, d, spec)
	exit, err := h.Wait(t.Context())
	require.NoError(t, err)
	out, err := os.ReadFile(filepath.Join(spec.Log.Dir, "t.stdout.0"))
	require.NoError(t, err)
	require.Zero(t, exit.Code, string(out))
	return string(out)
}

func TestKeysOfNomads(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	dir := t.TempDir()
	require.Equal(t, dir+"\n", printed(t, cfg, map[string]any{"work_dir": dir}, "pwd"))
	require.Equal(t, "300\n", printed(t, cfg, map[string]any{"oom_score_adj": 300},
		"until [ $(cat /proc/self/oom_score_adj) != 0 ]; do :; done; cat /proc/self/oom_score_adj"), "a program's children have it, too")
	cfg.DeniedEnv = []string{"AWS_*", "*_TOKEN"}
	require.Equal(t, "KEPT=1\n", printed(t, cfg, map[string]any{"denied_envvars": []any{"*MID*", "EXACT"}},
		"env | grep -E 'KEPT|AWS|TOKEN|MID|EXACT'", func(s *driver.Spec) {
			s.Env = map[string]string{"KEPT": "1", "AWS_KEY": "x", "A_TOKEN": "x", "A_MID_B": "x", "EXACT": "x"}
		}))
}

// TestDeniedUsers: the task's user, its groups, and the agent's own where a task names nobody.
func TestDeniedUsers(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root runs tasks as others")
	}
	cfg := config(t)
	cfg.DeniedUIDs, cfg.DeniedGIDs = validation.IDs{{0, 0}, {65534, 65534}}, validation.IDs{{1, 1}}
	require.NotContains(t, rawexec.New(config(t)).Fingerprint(t.Context()).Attributes, driver.OwnUserDenied)
	d := rawexec.New(cfg)
	require.Contains(t, d.Fingerprint(t.Context()).Attributes, driver.OwnUserDenied)
	for user, says := range map[string]string{
		"nobody": "denied_host_uids", "": "denied_host_uids", "daemon": "denied_host_gids", "4242:1": "denied_host_gids",
	} {
		spec := drivertest.Spec(t, t.TempDir(), map[string]any{"command": "/bin/true"})
		spec.User = user
		_, err := d.Start(t.Context(), spec)
		var start *driver.StartError
		require.ErrorAs(t, err, &start, user)
		require.False(t, start.Recoverable)
		require.ErrorContains(t, err, says)
		_, err = d.WalksAs(&drover.Task{User: user})
		require.Equal(t, drover.Forbidden, drover.CodeOf(err))
	}
}

// TestControlGroupsOfTheMachine: the task and all that it starts are in the groups that it names, and are ended all the same.
func TestControlGroupsOfTheMachine(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	m, err := cgroup.New(cgroup.Config{Parent: drivertest.GroupParent(t)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close(clock.Wall{})) })
	theirs, err := m.Create("theirs", cgroup.Limits{}, 0)
	require.NoError(t, err)
	dirs := theirs.Dirs()
	require.NotEmpty(t, dirs)
	override := map[string]any{}
	key := "cgroup_v2_override"
	var want string
	if m.Info().Version == cgroup.V2 {
		override[key] = dirs[0]
		want = strings.TrimPrefix(dirs[0], "/sys/fs/cgroup")
	} else {
		key = "cgroup_v1_override"
		controller, path, _ := strings.Cut(strings.TrimPrefix(dirs[0], "/sys/fs/cgroup/"), "/")
		override[key] = map[string]any{controller: path}
		want = ":/" + path
	}
	cfg.Cgroups, cfg.IdleDir = m, filepath.Join(t.TempDir(), "idle")
	out := printed(t, cfg, override, "(cat /proc/self/cgroup); setsid sleep 971.3 &")
	require.Contains(t, out, want)
	spec := drivertest.Spec(t, t.TempDir(), map[string]any{"command": "/bin/true", key: override[key]})
	if v, ok := override[key].(string); ok {
		spec.Config[key] = v + "/none"
	} else {
		spec.Config[key] = map[string]any{"memory": "no/such/group"}
	}
	_, err = rawexec.New(cfg).Start(t.Context(), spec)
	var start *driver.StartError
	require.ErrorAs(t, err, &start)
	require.False(t, start.Recoverable)
	require.ErrorContains(t, err, "joining the control group")
	t.Cleanup(func() { require.NoError(t, theirs.Remove(context.Background(), clock.Wall{})) })
}

func TestProblemsOfKeys(t *testing.T) {
	t.Parallel()
	d := rawexec.New(rawexec.Config{Enabled: true, Clock: clock.Wall{}})
	for says, config := range map[string]map[string]any{
		`work_dir: "x" is not an absolute path`:                {"work_dir": "x"},
		"oom_score_adj: 1001 is not between 0 and 1000":        {"oom_score_adj": 1001},
		`cgroup_v2_override: "../x" is no control group`:       {"cgroup_v2_override": "../x"},
		`cgroup_v2_override: "/etc/../.." is no control group`: {"cgroup_v2_override": "/etc/../.."},
		`cgroup_v1_override: "../x" is no controller`:          {"cgroup_v1_override": map[string]any{"../x": "y"}},
		"cannot be in groups of both": {
			"cgroup_v2_override": "a", "cgroup_v1_override": map[string]any{"memory": "b"},
		},
		"pids_limit: the task is in a control group of the machine's": {"cgroup_v2_override": "a", "pids_limit": 5},
	} {
		config["command"] = "x"
		err := d.Validate(&drover.Task{Driver: rawexec.Name, Config: config})
		require.Equal(t, drover.Invalid, drover.CodeOf(err), says)
		require.ErrorContains(t, err, says)
	}
	for i, config := range []map[string]any{
		{"cgroup_v2_override": "custom.slice/app"},
		{"cgroup_v2_override": "/sys/fs/cgroup/custom.slice"},
		{"cgroup_v1_override": map[string]any{"memory": "a", "pids": "/b"}},
		{"work_dir": "${NOMAD_TASK_DIR}/x"},
	} {
		config["command"] = "x"
		require.NoError(t, d.Validate(&drover.Task{Driver: rawexec.Name, Config: config}), strconv.Itoa(i))
	}
}
