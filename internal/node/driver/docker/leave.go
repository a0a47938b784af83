package docker

import (
	"path"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/options"
)

// row is what a key of a task's configuration can reach. Each key has one; see TestEachKeyHasARow.
type row struct {
	key  string // dotted for keys of blocks
	says string // why nothing outside of the container is reached by it, or what is
	// needs is the key of the plugin's configuration that gives leave, and example one that does; "" = nobody's leave.
	needs, example string
	// without lists the values that lack leave.
	without func(l leave) []string
}

// leave judges what one task asks for.
type leave struct {
	*Driver
	c *taskConfig
	// spec of a start; nil when a job is only checked: there its variables have no values yet.
	spec *driver.Spec
}

// check complains about everything that the node gives no leave for.
func (l leave) check(r *options.Reader) {
	for _, row := range rows {
		if row.without == nil {
			continue
		}
		for _, value := range row.without(l) {
			if l.spec == nil && strings.Contains(value, "${") {
				continue // its start checks it again
			}
			if strings.HasPrefix(value, containerMode) { // no leave is enough
				r.Problem(
					"%s: %s is outside of the container (%s): only containers of the same allocation can be joined, by %sTASK-${NOMAD_ALLOC_ID}",
					l.keyOf(row.key),
					value,
					row.says,
					containerMode,
				)
				continue
			}
			r.Problem(
				"%s: %s is outside of the container (%s), for which this node gives no leave: plugin %q { config { %s } }",
				l.keyOf(row.key),
				value,
				row.says,
				l.Name(),
				row.example,
			)
		}
	}
}

// The examples of what gives leave.
const (
	privilegedLeave = "allow_privileged = true"
	volumesLeave    = "volumes { enabled = true }"
)

// rows are the allow list: all keys, in the order of their names.
var rows = slices.Concat(harmless, reaching) // a constant

// reaching are the keys by which a task can get out of its container.
var reaching = []row{ // a constant
	{"cap_add", "a right over the machine's kernel", "allow_caps", `allow_caps = ["chown", …]`, func(l leave) []string {
		var out []string
		for _, n := range l.c.capAdd {
			if n = options.CapName(n); !l.allowsCap(n) {
				out = append(out, n)
			}
		}
		return out
	}},
	{"cgroupns", "the machine's control groups", "allow_privileged", privilegedLeave, func(l leave) []string {
		return l.privilegedUnless(l.c.cgroupns, "", "private")
	}},
	{"devices.host_path", "a device of the machine", "allow_devices", `allow_devices = ["/dev/nvidia*"]`, leave.devices},
	{"ipc_mode", "the shared memory of others", "allow_privileged", privilegedLeave, func(l leave) []string {
		return l.privilegedUnless(l.c.ipcMode, "", "none", "private", "shareable")
	}},
	{"mac_address", "who others of the network are", "allow_networks", `allow_networks = ["bridge"]`, func(l leave) []string {
		if !onDefaultNetwork(l.c.network) || l.c.mac == "" || matches(l.cfg.AllowNetworks, l.c.network) {
			return nil
		}
		return []string{l.c.mac}
	}},
	{"mounts.bind_options.propagation", "mounts of the machine", "volumes", volumesLeave, func(l leave) []string {
		return l.ofMounts(func(m mountConfig) string {
			return unless(l.cfg.AllowVolumes, m.propagation, "", "private", "rprivate")
		})
	}},
	{"mounts.source", "a path of the machine", "volumes", volumesLeave, func(l leave) []string {
		return l.ofMounts(func(m mountConfig) string {
			if m.kind == "bind" && path.IsAbs(m.source) {
				return unless(l.cfg.AllowVolumes, m.source)
			}
			return ""
		})
	}},
	{"mounts.type", "docker's volumes are everybody's", "volumes", volumesLeave, func(l leave) []string {
		return l.ofMounts(func(m mountConfig) string { return unless(l.cfg.AllowVolumes, m.kind, "bind", "tmpfs") })
	}},
	{
		"mounts.volume_options.driver_config.name",
		"a program of the machine's",
		"allow_volume_drivers",
		`allow_volume_drivers = ["NAME"]`,
		func(l leave) []string {
			return l.ofMounts(func(m mountConfig) string {
				return unless(matches(l.cfg.AllowVolumeDrivers, m.driver), m.driver, "", localDriver)
			})
		},
	},
	{
		"mounts.volume_options.driver_config.options",
		"they can mount any path and device of the machine",
		"allow_volume_drivers",
		`allow_volume_drivers = ["local"]`,
		func(l leave) []string {
			return l.ofMounts(func(m mountConfig) string {
				name := m.driver
				if name == "" {
					name = localDriver
				}
				if len(m.driverOptions) == 0 || matches(l.cfg.AllowVolumeDrivers, name) {
					return ""
				}
				return "of driver " + name
			})
		},
	},
	{"network_mode", "a network of others", "allow_networks", `allow_networks = ["NAME"]`, func(l leave) []string {
		mode := l.c.network
		switch {
		case mode == "none",
			onDefaultNetwork(mode),
			mode == hostMode,
			l.ofOwnAllocation(mode),
			matches(l.cfg.AllowNetworks, mode) && !strings.HasPrefix(mode, containerMode):
			return nil
		}
		return []string{mode}
	}},
	{
		"network_mode",
		"the machine's network, its services on localhost and abstract sockets",
		"allow_host_network",
		"allow_host_network = true",
		func(l leave) []string {
			if l.c.network != hostMode || l.cfg.AllowHostNetwork {
				return nil
			}
			return []string{hostMode}
		},
	},
	{"pid_mode", "the processes of others", "allow_privileged", privilegedLeave, func(l leave) []string {
		return l.privilegedUnless(l.c.pidMode, "", "private")
	}},
	{"privileged", "all of the machine", "allow_privileged", privilegedLeave, func(l leave) []string {
		if !l.c.privileged || l.cfg.AllowPrivileged {
			return nil
		}
		return []string{"true"}
	}},
	{"runtime", "a program of the machine's that runs as root", "allow_runtimes", `allow_runtimes = ["NAME"]`, leave.runtimes},
	{"security_opt", "what holds a container", "allow_privileged", privilegedLeave, func(l leave) []string {
		if l.cfg.AllowPrivileged {
			return nil
		}
		return slices.DeleteFunc(slices.Clone(l.c.securityOpt), ofPrivileges)
	}},
	{"storage_opt", "settings of the daemon's storage driver", "allow_privileged", privilegedLeave, func(l leave) []string {
		return others(l.c.storage, func(name string) bool { return name == "size" || l.cfg.AllowPrivileged })
	}},
	{"sysctl", "a setting of the machine's kernel", "allow_sysctls", `allow_sysctls = ["NAME"]`, func(l leave) []string {
		return others(l.c.sysctl, func(name string) bool {
			return l.namespaced(name) || matches(l.cfg.AllowSysctls, name)
		})
	}},
	{"ulimit", "more than a share of the machine", "allow_ulimits", `allow_ulimits = ["NAME"]`, func(l leave) []string {
		return others(l.c.ulimit, func(name string) bool {
			return slices.Contains(ownLimits, name) || matches(l.cfg.AllowUlimits, name)
		})
	}},
	{"userns_mode", "the machine's users", "allow_privileged", privilegedLeave, func(l leave) []string {
		return l.privilegedUnless(l.c.usernsMode, "")
	}},
	{"uts_mode", "the machine's name", "allow_privileged", privilegedLeave, func(l leave) []string {
		return l.privilegedUnless(l.c.utsMode, "")
	}},
	{"volume_driver", "a program of the machine's", "allow_volume_drivers", `allow_volume_drivers = ["NAME"]`, func(l leave) []string {
		if v := unless(matches(l.cfg.AllowVolumeDrivers, l.c.volumeDriver), l.c.volumeDriver, "", localDriver); v != "" {
			return []string{v}
		}
		return nil
	}},
	{"volumes", "a path of the machine, or its mounts", "volumes", volumesLeave, leave.volumes},
}

// harmless are those that reach nothing outside of the container, whatever they are set to.
var harmless = []row{ // a constant
	within("image", "files"), within("load", "an image of the task's folder, under a name of our own"),
	within("force_pull", "when the image is asked for"), within("image_pull_timeout", "how long"),
	within("auth", "an account at the registry"), within("auth.username", "of it"), within("auth.password", "of it"),
	within("auth.email", "not used"), within("auth.server_address", "the registry that it is for"),
	within("auth_soft_fail", "whether another try is made without it"),
	within("command", "a program of the image"), within("args", "its arguments"), within("entrypoint", "a program of the image"),
	within("work_dir", "a folder of the container"), within("hostname", "in a namespace of the container's"),
	within("init", "there always is one, ours"), within("labels", "names for people; ours cannot be taken"),
	within("port_map", "ports that the scheduler gave to the group"),
	within("network_aliases", "in a network that network_mode has leave for"),
	within("ipv4_address", "docker gives none on its default network"),
	within("ipv6_address", "as the other"), within("ports", "those that the scheduler gave to the group"),
	within("extra_hosts", "a file of the container"), within("dns_servers", "a file of the container"),
	within("dns_search_domains", "a file of the container"), within("dns_options", "a file of the container"),
	within("mount", "another name of mounts, which is looked at"), within("mounts", "its keys are looked at"),
	within("mounts.target", "a path of the container"), within("mounts.readonly", "less"),
	within("mounts.bind_options", "its key is looked at"),
	within("mounts.tmpfs_options", "memory of the task"), within("mounts.tmpfs_options.size", "memory of the task"),
	within("mounts.tmpfs_options.mode", "of a folder of the container"), within("mounts.volume_options", "its keys are looked at"),
	within("mounts.volume_options.no_copy", "what a new volume begins with"), within("mounts.volume_options.labels", "names for people"),
	within("mounts.volume_options.driver_config", "its keys are looked at"),
	within("tmpfs", "memory of the task"), within("readonly_rootfs", "less"), within("shm_size", "memory of the task"),
	within("cap_drop", "less"), within("cpu_hard_limit", "less"), within("cpuset_cpus", "less"), within("cpu_cfs_period", "how it is counted"),
	within("memory_hard_limit", "a limit"), within("pids_limit", "a limit, of which the node has the highest"),
	within("devices", "its keys are looked at"), within("devices.container_path", "a path of the container"),
	within("devices.cgroup_permissions", "less"), within("container_exists_attempts", "not used"),
	within("advertise_ipv6_address", "refused always"), within("healthchecks", "not used"), within("healthchecks.disable", "not used"),
	within("logging", "not used: the supervisor writes the logs"), within("logging.type", "as above"), within("logging.driver", "as above"),
	within("logging.config", "as above"), within("logging.options", "as above"),
	within("tty", "a terminal of the container"), within("interactive", "an input that nobody writes to"),
	within("group_add", "no more than the container's root may"),
	within("oom_score_adj", "refused always"), within("isolation", "refused always"),
}

// within is a row without a check; why says what the key stays within.
func within(key, why string) row { return row{key: key, says: why} }

// The machine's namespace as modes name it, and the volume driver that is meant where none is named.
const (
	hostMode    = "host"
	localDriver = "local"
)

// privilegedUnless is for keys whose only values that need no leave are these, and which name a container or the machine
// otherwise. Containers of the same allocation are the task's own.
func (l leave) privilegedUnless(value string, harmless ...string) []string {
	if slices.Contains(harmless, value) || l.cfg.AllowPrivileged && value == hostMode || l.ofOwnAllocation(value) {
		return nil
	}
	return []string{value}
}

// ofOwnAllocation reports whether a mode names a container of the task's own allocation, by the name that we give to it:
// no other's can end so.
func (l leave) ofOwnAllocation(mode string) bool {
	name, named := strings.CutPrefix(mode, containerMode)
	switch {
	case !named:
		return false
	case l.spec == nil:
		return strings.HasSuffix(name, "-${NOMAD_ALLOC_ID}")
	}
	return l.spec.AllocID != "" && strings.HasSuffix(name, "-"+l.spec.AllocID)
}

// unless is the value, if it is none of the harmless ones and there is no leave.
func unless(given bool, value string, harmless ...string) string {
	if given || slices.Contains(harmless, value) {
		return ""
	}
	return value
}

// ofMounts collects what lacks leave in each mount: the value that lacks returns, "" for none.
func (l leave) ofMounts(lacks func(mountConfig) string) (out []string) {
	for _, m := range l.c.mounts {
		if v := lacks(m); v != "" {
			out = append(out, v)
		}
	}
	return out
}

// volumes are host:container:options; with a volume_driver the first is a volume's name, and docker's volumes are everybody's.
func (l leave) volumes() (out []string) {
	if l.cfg.AllowVolumes {
		return nil
	}
	for _, v := range l.c.volumes {
		parts := append(strings.SplitN(v, ":", 3), "", "") // parts
		set := strings.Split(parts[2], ",")
		if path.IsAbs(parts[0]) || l.c.volumeDriver != "" ||
			slices.ContainsFunc(set, func(o string) bool { return !slices.Contains(plainBinds, o) }) {
			out = append(out, v)
		}
	}
	return out
}

// plainBinds are the options of volumes that change nothing outside.
var plainBinds = []string{"", "ro", "rw", "z", "Z", "nocopy", "private", "rprivate", "cached", "consistent", "delegated"} // a constant

// devices are the paths without leave. A path that is not clean could match a pattern and mean another device, so it never has leave.
func (l leave) devices() (out []string) {
	for _, m := range l.c.devices {
		p := m.PathOnHost
		if !l.cfg.AllowPrivileged && (path.Clean(p) != p || !matches(l.cfg.AllowDevices, p)) {
			out = append(out, p)
		}
	}
	return out
}

// ownRuntimes need no leave: they hold a container as well as docker's own does, or better. Where the daemon has another,
// its operator knows what it does.
var ownRuntimes = []string{ // a constant
	"", "runc", "io.containerd.runc.v2", "crun", "youki", "runsc", "io.containerd.runsc.v1", "kata*", "io.containerd.kata*",
	"sysbox-runc", "nvidia",
}

// runtimes is the runtime if it lacks leave. The node's list replaces our own, but for the daemon's default.
func (l leave) runtimes() []string {
	allowed := ownRuntimes
	if len(l.cfg.AllowRuntimes) > 0 {
		allowed = append([]string{""}, l.cfg.AllowRuntimes...)
	}
	if matches(allowed, l.c.runtime) {
		return nil
	}
	return []string{l.c.runtime}
}

// ownLimits count for the container's processes alone.
var ownLimits = []string{"core", "cpu", "data", "fsize", "locks", "memlock", "nofile", "nproc", "rss", "stack"} // a constant

// ownSettings are the kernel's that each container has its own of; those of networks are looked at apart.
var ownSettings = []string{"kernel.msg*", "kernel.sem", "kernel.shm*", "fs.mqueue.*"} // a constant

// namespaced reports whether the container has this setting for itself; with the machine's network or memory of processes it has not.
func (l leave) namespaced(name string) bool {
	if strings.HasPrefix(name, "net.") {
		return l.c.network != hostMode
	}
	return matches(ownSettings, name) && l.c.ipcMode != hostMode
}

// others lists, sorted, the names without leave.
func others(given map[string]string, allowed func(name string) bool) (out []string) {
	for name := range given {
		if !allowed(name) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// matches reports whether one of the patterns, as path.Match has them, fits.
func matches(patterns []string, value string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, err := path.Match(p, value)
		return ok && err == nil
	})
}

// onDefaultNetwork reports whether a mode is what tasks have that name none.
func onDefaultNetwork(mode string) bool { return mode == "" || mode == "bridge" || mode == "default" }

// ofPrivileges reports whether this is the one security option that needs nobody's leave: whether programs may get more
// rights than they were started with. A task may say that its own do, which gives it nothing that its root does not have.
func ofPrivileges(option string) bool {
	name, value, _ := strings.Cut(strings.Replace(option, "=", ":", 1), ":")
	return name == "no-new-privileges" && slices.Contains([]string{"", "true", "false"}, value)
}
