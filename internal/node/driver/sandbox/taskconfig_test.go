package sandbox

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

func TestConfig(t *testing.T) {
	t.Parallel()
	d := New(Config{AllowCaps: []string{"net_raw"}, AllowHostNetwork: true})
	c, err := d.parse(map[string]any{
		"image": "x", "command": "c", "args": []any{"a"}, "entrypoint": []string{"e"}, "work_dir": "/w", "network_mode": "host",
		"pids_limit": float64(7), "cpu_hard_limit": "true", "disk_mb": 9, "readonly_rootfs": true, "hostname": "h",
		"mounts":  []any{map[string]any{"source": "local/x", "target": "/x", "readonly": true}},
		"cap_add": []any{"CAP_NET_RAW"}, "cap_drop": []any{"chown"}, "auth": map[string]any{"username": "u", "password": "p"},
		"force_pull": true, "privileged": false,
	})
	require.NoError(t, err)
	require.Equal(t, []mountConfig{{"local/x", "/x", true}}, c.mounts)
	require.Equal(t, "u", c.request().Username)
	require.True(t, c.request().Pull)
	require.Equal(t, int64(7), c.pids)
	caps, err := d.caps(c)
	require.NoError(t, err)
	require.NotZero(t, caps&(1<<13))
	require.Zero(t, caps&1)
}

func TestAllProblemsAtOnce(t *testing.T) {
	t.Parallel()
	err := New(Config{}).Validate(&drover.Task{Config: map[string]any{
		"comand": 1, "args": "x", "pids_limit": 0.5, "disk_mb": -3, "work_dir": "w", "network_mode": "moon", "privileged": true,
		"mounts": []any{map[string]any{"source": "/etc", "target": "x", "to": 1}}, "cap_add": []any{"sys_admin", []any{}},
		"cap_drop": []any{"flying"},
		"auth":     "x",
	}})
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
	for _, part := range []string{
		`unknown key "comand"`, "args: must be a list", "pids_limit: must be a whole number", "disk_mb: -3", "work_dir", "moon", "privileged",
		`"/etc" is outside`, `target "x"`, `unknown key "to"`, "cap_add", "flying", "auth",
	} {
		require.ErrorContains(t, err, part)
	}
}

func TestIDRangesDoNotMeet(t *testing.T) {
	t.Parallel()
	r := idRanges{used: map[uint32]bool{}}
	r.hold(1)
	seen := map[uint32]bool{1: true}
	for range 100 {
		slot, err := r.take()
		require.NoError(t, err)
		require.False(t, seen[slot])
		seen[slot] = true
		require.Zero(t, base(slot)%idSize)
	}
	r.next = idSlots - 1
	_, err := r.take()
	require.NoError(t, err)
	require.Less(t, base(idSlots-1)+idSize-1, 1<<31)
}
