package docker

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/driver"
)

// TestEachKeyHasARow: whoever adds a key to the configuration says what it can reach.
func TestEachKeyHasARow(t *testing.T) {
	t.Parallel()
	have := map[string]bool{}
	for _, row := range rows {
		require.NotEmpty(t, row.says, row.key)
		require.Equal(t, row.needs == "", row.without == nil, row.key)
		have[row.key] = true
	}
	keys := Keys()
	require.Greater(t, len(keys), 80)
	for _, key := range keys {
		if rest, ok := strings.CutPrefix(key, "mount."); ok {
			key = "mounts." + rest
		}
		require.True(t, have[key], "%s is read, and no row of leave.go says what it can reach", key)
	}
	for key := range have {
		require.True(t, slices.Contains(keys, key), "%s has a row, and is not read", key)
	}
}

// reach is an option that reaches outside, and what gives the leave.
type reach struct {
	key, value string
	config     map[string]any
	needs      string
	give       func(*Config)
}

// TestWhatReachesOutsideNeedsLeave: each by its name, with the key that gives it.
func TestWhatReachesOutsideNeedsLeave(t *testing.T) {
	t.Parallel()
	tried := map[string]bool{}
	for _, try := range slices.Concat(reachesOfPrivilege(), reachesOfFiles()) {
		try.config["image"] = "i"
		_, err := (&Driver{}).parse(try.config, &driver.Spec{})
		require.Equal(t, drover.Invalid, drover.CodeOf(err), try.key)
		require.ErrorContains(t, err, try.key+": "+try.value+" is outside of the container")
		require.ErrorContains(t, err, "{ config { "+try.needs, try.key)
		var cfg Config
		try.give(&cfg)
		_, err = (&Driver{cfg: cfg}).parse(try.config, &driver.Spec{})
		require.NoError(t, err, try.key)
		tried[try.key] = true
	}
	for _, row := range reaching {
		require.True(t, tried[row.key], "%s is not tried", row.key)
	}
}

func reachesOfPrivilege() []reach {
	privileged := func(c *Config) { c.AllowPrivileged = true }
	return []reach{
		{
			"cap_add", "sys_admin",
			map[string]any{"cap_add": []any{"CAP_SYS_ADMIN"}},
			"allow_caps",
			func(c *Config) { c.AllowCaps = []string{"sys_admin"} },
		},
		{"cap_add", "net_raw", map[string]any{"cap_add": []any{"net_raw"}}, "allow_caps", func(c *Config) { c.AllowCaps = []string{"net_raw"} }},
		{"cgroupns", "host", map[string]any{"cgroupns": "host"}, "allow_privileged", privileged},
		{"ipc_mode", "host", map[string]any{"ipc_mode": "host"}, "allow_privileged", privileged},
		{
			"mac_address", "02:42:ac:11:00:02",
			map[string]any{"mac_address": "02:42:ac:11:00:02", "network_mode": "bridge"},
			"allow_networks",
			func(c *Config) { c.AllowNetworks = []string{"bridge"} },
		},
		{"network_mode", "app", map[string]any{"network_mode": "app"}, "allow_networks", func(c *Config) { c.AllowNetworks = []string{"app*"} }},
		{"network_mode", "host", map[string]any{"network_mode": "host"}, "allow_host_network", func(c *Config) { c.AllowHostNetwork = true }},
		{"pid_mode", "host", map[string]any{"pid_mode": "host"}, "allow_privileged", privileged},
		{"privileged", "true", map[string]any{"privileged": true}, "allow_privileged", privileged},
		{"runtime", "strange", map[string]any{"runtime": "strange"}, "allow_runtimes", func(c *Config) { c.AllowRuntimes = []string{"strange"} }},
		{
			"security_opt", `seccomp={"defaultAction":"SCMP_ACT_ALLOW"}`,
			map[string]any{"security_opt": []any{`seccomp={"defaultAction":"SCMP_ACT_ALLOW"}`}},
			"allow_privileged", privileged,
		},
		{"security_opt", "apparmor=other", map[string]any{"security_opt": []any{"apparmor=other"}}, "allow_privileged", privileged},
		{"security_opt", "label=disable", map[string]any{"security_opt": []any{"label=disable"}}, "allow_privileged", privileged},
		{
			"sysctl", "kernel.core_pattern",
			map[string]any{"sysctl": map[string]any{"kernel.core_pattern": "|/x"}},
			"allow_sysctls",
			func(c *Config) { c.AllowSysctls = []string{"kernel.*"} },
		},
		{
			"ulimit", "rtprio",
			map[string]any{"ulimit": map[string]any{"rtprio": "99"}},
			"allow_ulimits",
			func(c *Config) { c.AllowUlimits = []string{"rtprio"} },
		},
		{"userns_mode", "host", map[string]any{"userns_mode": "host"}, "allow_privileged", privileged},
		{"uts_mode", "host", map[string]any{"uts_mode": "host"}, "allow_privileged", privileged},
	}
}

func reachesOfFiles() []reach {
	privileged := func(c *Config) { c.AllowPrivileged = true }
	volumes := func(c *Config) { c.AllowVolumes = true }
	volume := func(of map[string]any) map[string]any {
		return map[string]any{"mounts": map[string]any{"source": "v", "target": "/v", "volume_options": map[string]any{"driver_config": of}}}
	}
	return []reach{
		{
			"devices.host_path", "/dev/loop0",
			map[string]any{"devices": map[string]any{"host_path": "/dev/loop0"}},
			"allow_devices",
			func(c *Config) { c.AllowDevices = []string{"/dev/loop*"} },
		},
		{"devices.host_path", "/dev/loop0", map[string]any{"devices": map[string]any{"host_path": "/dev/loop0"}}, "allow_devices", privileged},
		{"mounts.bind_options.propagation", "rshared", map[string]any{"mount": map[string]any{
			"type": "bind", "source": "local", "target": "/x", "bind_options": map[string]any{"propagation": "rshared"},
		}}, "volumes", volumes},
		{"mounts.source", "/etc", map[string]any{"mount": map[string]any{"type": "bind", "source": "/etc", "target": "/x"}}, "volumes", volumes},
		{"mounts.type", "volume", volume(nil), "volumes", volumes},
		{"mounts.volume_options.driver_config.name", "rexray", volume(map[string]any{"name": "rexray"}), "allow_volume_drivers", func(c *Config) {
			c.AllowVolumes, c.AllowVolumeDrivers = true, []string{"rex*"}
		}},
		{
			"mounts.volume_options.driver_config.options", "of driver local",
			volume(map[string]any{"options": map[string]any{"type": "ext4", "device": "/dev/sda1"}}),
			"allow_volume_drivers", func(c *Config) {
				c.AllowVolumes, c.AllowVolumeDrivers = true, []string{"local"}
			},
		},
		{"storage_opt", "dm.thing", map[string]any{"storage_opt": map[string]any{"dm.thing": "1", "size": "1G"}}, "allow_privileged", privileged},
		{"volumes", "v:/x", map[string]any{"volumes": []any{"v:/x"}, "volume_driver": "local"}, "volumes", volumes},
		{"volume_driver", "rexray", map[string]any{"volume_driver": "rexray"}, "allow_volume_drivers", func(c *Config) {
			c.AllowVolumeDrivers = []string{"rex*"}
		}},
		{"volumes", "/etc:/x", map[string]any{"volumes": []any{"/etc:/x"}}, "volumes", volumes},
		{"volumes", "local:/x:rshared", map[string]any{"volumes": []any{"local:/x:rshared"}}, "volumes", volumes},
	}
}

// TestContainersOfOthersAreNeverJoined, not with any leave; the allocation's own are.
func TestContainersOfOthersAreNeverJoined(t *testing.T) {
	t.Parallel()
	const own, others = "0a1b2c3d-0000-0000-0000-000000000001", "0a1b2c3d-0000-0000-0000-000000000002"
	open := &Driver{cfg: Config{AllowPrivileged: true, AllowHostNetwork: true, AllowNetworks: []string{"*"}}}
	for _, key := range []string{"pid_mode", "ipc_mode", "network_mode"} {
		try := func(d *Driver, mode string, spec *driver.Spec) error {
			_, err := d.parse(map[string]any{"image": "i", key: mode}, spec)
			return err
		}
		for _, mode := range []string{"container:secvictim", "container:t-" + others, "container:" + own, "container:", "container:0a1b"} {
			require.ErrorContains(t, try(open, mode, &driver.Spec{AllocID: own}), key+": "+mode+" is outside")
			require.Error(t, try(open, mode, nil), "when the job is registered, too")
		}
		require.NoError(t, try(&Driver{}, "container:t-"+own, &driver.Spec{AllocID: own}))
		require.NoError(t, try(&Driver{}, "container:t-${NOMAD_ALLOC_ID}", nil))
		require.Error(t, try(&Driver{}, "container:t-${NOMAD_ALLOC_ID}", &driver.Spec{AllocID: own}), "a start has values")
	}
}

// TestUsualJobsNeedNoLeave of the node.
func TestUsualJobsNeedNoLeave(t *testing.T) {
	t.Parallel()
	d, err := New(Config{Clock: clock.Wall{}})
	require.NoError(t, err)
	for _, config := range []map[string]any{
		{"network_mode": "bridge"},
		{"network_mode": "none"},
		{"ports": []any{"http"}, "volumes": []any{"local/conf:/etc/app:ro"}},
		{"mount": map[string]any{"type": "bind", "source": "local/x", "target": "/x", "readonly": true}},
		{"mount": map[string]any{"type": "tmpfs", "target": "/x", "tmpfs_options": map[string]any{"size": 1000}}},
		{"security_opt": []any{"no-new-privileges"}},
		{"security_opt": []any{"no-new-privileges=false"}},
		{"ipc_mode": "private"},
		{"sysctl": map[string]any{"net.core.somaxconn": "1024"}, "ulimit": map[string]any{"nofile": "1024:2048", "memlock": "-1"}},
		{"storage_opt": map[string]any{"size": "40G"}, "cap_drop": []any{"all"}, "cap_add": []any{"chown", "NET_BIND_SERVICE"}},
		{"runtime": "runsc"},
		{"runtime": "kata-runtime"},
		{"runtime": "${meta.runtime}"},
		{"extra_hosts": []any{"h:host-gateway"}},
	} {
		config["image"] = "i"
		require.NoError(t, d.Validate(&drover.Task{Config: config}), "%v", config)
	}
	require.NoError(t, d.Close())
}

// TestTheSupervisorsFolderIsNotCovered by mounts of the task.
func TestTheSupervisorsFolderIsNotCovered(t *testing.T) {
	t.Parallel()
	for key, value := range map[string]any{
		"volumes": []any{"local/x:/.drover/boot/h"}, "tmpfs": []any{"/.drover"},
		"mounts": map[string]any{"type": "tmpfs", "target": "/x/../.drover/init"},
	} {
		_, err := (&Driver{}).parse(map[string]any{"image": "i", key: value}, nil)
		require.ErrorContains(t, err, "is the supervisor's", key)
	}
}
