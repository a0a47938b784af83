package docker

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/drivertest"
)

// allLeave is a node that allows everything.
func allLeave(podman bool) *Driver {
	all := []string{"*", "/dev/*"}
	return &Driver{cfg: Config{
		Podman: podman, AllowPrivileged: true, AllowVolumes: true, AllowCaps: []string{"all"}, AllowHostNetwork: true, AllowDevices: all,
		AllowNetworks: all, AllowVolumeDrivers: all, AllowSysctls: all, AllowUlimits: all,
	}}
}

// in is a block with what comes before the key.
func in(pairs ...any) map[string]any {
	out := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i].(string)] = pairs[i+1]
	}
	return out
}

// mountKeys are those of a block mount or mounts.
func mountKeys(block string) []drivertest.Key {
	bind := in("type", "bind", "source", "/a", "target", "/b")
	tmpfs := in("type", "tmpfs", "target", "/b")
	volume := in("source", "v", "target", "/b")
	plus := func(to map[string]any, key string, value any) drivertest.Key {
		with := maps.Clone(to)
		with[key] = value
		return drivertest.Key{With: []any{with}, Without: []any{to}}
	}
	named := func(name string, k drivertest.Key) drivertest.Key {
		k.Name = block + "." + name
		return k
	}
	return []drivertest.Key{
		named("type", plus(in("source", "a", "target", "/b"), "type", "bind")),
		named("source", plus(in("type", "bind", "target", "/b"), "source", "/a")),
		named("target", plus(in("type", "tmpfs"), "target", "/b")),
		named("readonly", plus(bind, "readonly", true)),
		named("bind_options.propagation", plus(bind, "bind_options", in("propagation", "rslave"))),
		named("bind_options", plus(bind, "bind_options", in("propagation", "rslave"))),
		named("tmpfs_options", plus(tmpfs, "tmpfs_options", in("size", 5))),
		named("tmpfs_options.size", plus(tmpfs, "tmpfs_options", in("size", 5))),
		named("tmpfs_options.mode", plus(tmpfs, "tmpfs_options", in("mode", 5))),
		named("volume_options", plus(volume, "volume_options", in("no_copy", true))),
		named("volume_options.no_copy", plus(volume, "volume_options", in("no_copy", true))),
		named("volume_options.labels", plus(volume, "volume_options", in("labels", in("a", "b")))),
		named("volume_options.driver_config", plus(volume, "volume_options", in("driver_config", in("name", "x")))),
		named("volume_options.driver_config.name", plus(volume, "volume_options", in("driver_config", in("name", "x")))),
		named("volume_options.driver_config.options", plus(volume, "volume_options", in("driver_config", in("options", in("a", "b"))))),
	}
}

// nomadsKeys are those of Nomad's docker driver 2.0: drivers/docker, taskConfigSpec, and its documentation
// (docs/job-declare/task-driver/docker).
var nomadsKeys = slices.Concat([]drivertest.Key{
	{Name: "advertise_ipv6_address", With: true, Fate: drivertest.Refused},
	{Name: "args", With: []any{"a"}},
	{Name: "auth.username", With: in("username", "a"), Without: in()},
	{Name: "auth.password", With: in("password", "a"), Without: in()},
	{Name: "auth.email", With: in("email", "a"), Without: in(), Fate: drivertest.Ignored}, // registries ask for none any more
	{Name: "auth.server_address", With: in("server_address", "a"), Without: in()},
	{Name: "auth_soft_fail", With: true},
	{Name: "cap_add", With: []any{"net_raw"}},
	{Name: "cap_drop", With: []any{"chown"}},
	{Name: "cgroupns", With: "private"},
	{Name: "command", With: "a"},
	{Name: "container_exists_attempts", With: 3, Fate: drivertest.Ignored},
	{Name: "cpu_cfs_period", With: 5000},
	{Name: "cpu_hard_limit", With: true},
	{Name: "cpuset_cpus", With: "0-1"},
	{Name: "devices.host_path", With: []any{in("host_path", "/dev/x")}, Without: []any{in("host_path", "/dev/y")}},
	{Name: "devices.container_path", With: in("host_path", "/dev/x", "container_path", "/y"), Without: in("host_path", "/dev/x")},
	{Name: "devices.cgroup_permissions", With: in("host_path", "/dev/x", "cgroup_permissions", "r"), Without: in("host_path", "/dev/x")},
	{Name: "dns_options", With: []any{"a"}},
	{Name: "dns_search_domains", With: []any{"a"}},
	{Name: "dns_servers", With: []any{"1.1.1.1"}},
	{Name: "entrypoint", With: []any{"a"}},
	{Name: "extra_hosts", With: []any{"a:1.1.1.1"}},
	{Name: "force_pull", With: true},
	{Name: "group_add", With: []any{"a"}},
	{Name: "healthchecks.disable", With: in("disable", true), Without: in(), Fate: drivertest.Ignored},
	{Name: "hostname", With: "a"},
	{Name: "image", With: "other"},
	{Name: "image_pull_timeout", With: "1m"},
	{Name: "init", With: true, Fate: drivertest.Ignored}, // there always is one
	{Name: "interactive", With: true},
	{Name: "ipc_mode", With: "private"},
	{Name: "ipv4_address", With: "1.1.1.1"},
	{Name: "ipv6_address", With: "::1"},
	{Name: "isolation", With: "hyperv", Fate: drivertest.Refused},
	{Name: "labels", With: []any{in("a", "b")}},
	{Name: "load", With: "a.tar"},
	{Name: "logging.type", With: in("type", "json-file"), Without: in(), Fate: drivertest.Ignored},
	{Name: "logging.driver", With: in("driver", "syslog"), Without: in(), Fate: drivertest.Refused},
	{Name: "logging.config", With: in("config", in("max-size", "1m")), Without: in(), Fate: drivertest.Ignored},
	{Name: "mac_address", With: "02:42:ac:11:00:02"},
	{Name: "memory_hard_limit", With: 100},
	{Name: "network_aliases", With: []any{"a"}},
	{Name: "network_mode", With: "none"},
	{Name: "oom_score_adj", With: 5, Fate: drivertest.Refused},
	{Name: "pid_mode", With: "host"},
	{Name: "pids_limit", With: 5},
	{Name: "port_map", With: []any{in("http", 80)}},
	{Name: "ports", With: []any{"http"}},
	{Name: "privileged", With: true},
	{Name: "readonly_rootfs", With: true},
	{Name: "runtime", With: "runc"},
	{Name: "security_opt", With: []any{"no-new-privileges"}},
	{Name: "shm_size", With: 5},
	{Name: "storage_opt", With: in("size", "1g")},
	{Name: "sysctl", With: []any{in("net.core.somaxconn", "5")}},
	{Name: "tty", With: true},
	{Name: "ulimit", With: in("nofile", "5")},
	{Name: "userns_mode", With: "host"},
	{Name: "uts_mode", With: "host"},
	{Name: "volume_driver", With: "a"},
	{Name: "volumes", With: []any{"a:/b"}},
	{Name: "work_dir", With: "/a"},
}, mountKeys("mount"), mountKeys("mounts"))

// TestNomadsKeys: each works, is refused by its name, or is known to change nothing.
func TestNomadsKeys(t *testing.T) {
	t.Parallel()
	walk(t, nomadsKeys, false, Keys(), []string{"tmpfs", "logging.options"})
}

func walk(t *testing.T, keys []drivertest.Key, podman bool, read, ours []string) {
	t.Helper()
	d := allLeave(podman)
	drivertest.WalkKeys(t, keys, map[string]any{"image": "i"}, func(config map[string]any) (any, error) {
		c, err := d.parse(config, &driver.Spec{})
		return c, err
	}, read, ours)
	for key := range Refused {
		require.True(t, podman || slices.ContainsFunc(keys, func(k drivertest.Key) bool {
			return k.Name == key && k.Fate == drivertest.Refused
		}), key)
	}
}

// podmansKeys are those of Nomad's podman driver 0.6: its config.go, taskConfigSpec.
var podmansKeys = []drivertest.Key{
	{Name: "apparmor_profile", With: "a"},
	{Name: "args", With: []any{"a"}},
	{Name: "auth.username", With: in("username", "a"), Without: in()},
	{Name: "auth.password", With: in("password", "a"), Without: in()},
	{Name: "auth.tls_verify", With: in("tls_verify", false), Without: in(), Fate: drivertest.Refused},
	{Name: "auth_soft_fail", With: true},
	{Name: "cap_add", With: []any{"net_raw"}},
	{Name: "cap_drop", With: []any{"chown"}},
	{Name: "command", With: "a"},
	{Name: "cpu_cfs_period", With: 5000},
	{Name: "cpu_hard_limit", With: true},
	{Name: "devices", With: []any{"/dev/x:/dev/y:r"}},
	{Name: "entrypoint", With: []any{"a"}},
	{Name: "extra_hosts", With: []any{"a:1.1.1.1"}},
	{Name: "force_pull", With: true},
	{Name: "hostname", With: "a"},
	{Name: "image", With: "docker://other"},
	{Name: "image_pull_timeout", With: "1m"},
	{Name: "init", With: true, Fate: drivertest.Ignored}, // there always is one
	{Name: "init_path", With: "/a", Fate: drivertest.Refused},
	{Name: "labels", With: []any{in("a", "b")}},
	{Name: "logging.driver", With: in("driver", "journald"), Without: in(), Fate: drivertest.Refused},
	{Name: "logging.options", With: in("options", []any{in("tag", "a")}), Without: in(), Fate: drivertest.Ignored},
	{Name: "memory_reservation", With: "5m"},
	{Name: "memory_swap", With: "5m", Fate: drivertest.Refused},
	{Name: "memory_swappiness", With: 5, Fate: drivertest.Refused},
	{Name: "network_mode", With: "none"},
	{Name: "pids_limit", With: 5},
	{Name: "port_map", With: []any{in("http", 80)}},
	{Name: "ports", With: []any{"http"}},
	{Name: "privileged", With: true},
	{Name: "readonly_rootfs", With: true},
	{Name: "selinux_opts", With: []any{"a"}},
	{Name: "shm_size", With: "5m"},
	{Name: "socket", With: "other", Fate: drivertest.Refused},
	{Name: "sysctl", With: []any{in("net.core.somaxconn", "5")}},
	{Name: "tmpfs", With: []any{"/a"}},
	{Name: "tty", With: true},
	{Name: "ulimit", With: []any{in("nofile", "5")}},
	{Name: "userns", With: "keep-id", Fate: drivertest.Refused},
	{Name: "volumes", With: []any{"a:/b"}},
	{Name: "working_dir", With: "/a"},
}

// TestPodmansKeys: the same, and each has a row in the list of what reaches outside.
func TestPodmansKeys(t *testing.T) {
	t.Parallel()
	walk(t, podmansKeys, true, PodmanKeys(), nil)
	have := map[string]bool{}
	for _, row := range rows {
		have[row.key] = true
	}
	for _, k := range podmansKeys {
		of, other := podmanRows[k.Name]
		if !other {
			of = k.Name
		}
		require.True(t, have[of], "%s is read, and no row of leave.go says what it can reach", k.Name)
		require.False(t, PodmanRefused[k.Name] != "" && k.Fate != drivertest.Refused, k.Name)
	}
	require.Empty(t, slices.DeleteFunc(slices.Collect(maps.Keys(PodmanRefused)), func(key string) bool {
		return strings.Contains(key, ".") || slices.ContainsFunc(podmansKeys, func(k drivertest.Key) bool { return k.Name == key })
	}))
}
