package docker

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/moby/api/types/container"

	"github.com/drover-project/drover/internal/node/driver/docker/images"
	"github.com/drover-project/drover/internal/node/driver/options"
)

// Podman is the name of the driver in jobs whose containers are podman's. Podman speaks docker's API, and jobs the keys of Nomad's podman
// driver: they are read into what this package has for docker's, so that the same leave is needed for the same thing.
const Podman = "podman"

// PodmanSocket is where podman listens for root.
const PodmanSocket = "unix:///run/podman/podman.sock"

// namespaceMode is of a network namespace by its path, which podman joins whoever made it; docker does not.
const namespaceMode = "ns:"

// PodmanKeys are those of a task's configuration.
func PodmanKeys() []string { return options.Keys(func(r *options.Reader) { readPodman(r) }) }

// podmanRows names the row of each key of podman's that is called otherwise by docker's driver.
var podmanRows = map[string]string{ // a constant
	"apparmor_profile": "security_opt", "selinux_opts": "security_opt", "userns": "userns_mode", "working_dir": "work_dir",
	"devices": "devices.host_path", "auth.tls_verify": "auth", "memory_reservation": "memory_hard_limit", "init_path": "init",
	"memory_swap": "memory_hard_limit", "memory_swappiness": "memory_hard_limit", "socket": "init", "logging.driver": "logging",
}

// keyOf is what the driver calls the key of a row.
func (d *Driver) keyOf(row string) string {
	if !d.cfg.Podman {
		return row
	}
	var own []string
	for key, of := range podmanRows {
		if of == row {
			own = append(own, key)
		}
	}
	if len(own) == 0 {
		return row
	}
	slices.Sort(own)
	return strings.Join(own, ", ")
}

// transports are the ways of podman's to name images that are no registry's, and may be any file of the machine.
var transports = []string{ // a constant
	"docker-archive:", "docker-daemon:", "oci:", "oci-archive:", "dir:", "containers-storage:", "ostree:", "sif:", "tarball:",
}

// ownLabels begin the labels that podman heeds: by PODMAN_SYSTEMD_UNIT and io.containers.autoupdate it restarts units of the machine.
var ownLabels = []string{"podman_", "io.containers.", "io.podman."} // a constant

// readPodman takes every key of Nomad's podman driver once.
func readPodman(r *options.Reader) taskConfig {
	c := taskConfig{
		image:   images.Request{Ref: strings.TrimPrefix(r.Str("image"), "docker://"), ForcePull: r.Flag("force_pull")},
		command: r.Str("command"), args: r.Strs("args"), entrypoint: r.Words("entrypoint"), hasEntry: r.Has("entrypoint"),
		workDir: r.Str("working_dir"), hostname: r.Str("hostname"),
		network: r.Str("network_mode"), ports: r.Strs("ports"), extraHosts: r.Strs("extra_hosts"),
		volumes: r.Strs("volumes"), readOnly: r.Flag("readonly_rootfs"), shmSize: size(r, "shm_size"), capAdd: r.Strs("cap_add"),
		capDrop: r.Strs("cap_drop"), privileged: r.Flag("privileged"), sysctl: r.Dict("sysctl"),
		cpuHard: r.Flag("cpu_hard_limit"), cpuPeriod: r.Num("cpu_cfs_period", 1000, 1_000_000), pids: r.Num("pids_limit", -1, maxPids),
		ulimit: r.Dict("ulimit"), labels: r.Dict("labels"), tmpfs: r.Strs("tmpfs"), memorySoft: size(r, "memory_reservation"),
		portMap: readPortMap(r), tty: r.Flag("tty"),
	}
	named := func(prefix string) bool { return strings.HasPrefix(c.image.Ref, prefix) }
	if slices.ContainsFunc(transports, named) || strings.Contains(c.image.Ref, ":/") {
		r.Problem("image: %q is not an image of a registry, which is all that a job can name", c.image.Ref)
	}
	for _, label := range slices.Sorted(maps.Keys(c.labels)) {
		if slices.ContainsFunc(ownLabels, func(prefix string) bool { return strings.HasPrefix(strings.ToLower(label), prefix) }) {
			r.Problem("labels: %q is podman's own: what it says is done outside of the container", label)
		}
	}
	if profile := r.Str("apparmor_profile"); profile != "" {
		c.securityOpt = append(c.securityOpt, "apparmor="+profile)
	}
	for _, o := range r.Strs("selinux_opts") {
		c.securityOpt = append(c.securityOpt, "label="+o)
	}
	for _, d := range r.Strs("devices") {
		parts := append(strings.SplitN(d, ":", 3), "", "")
		m := container.DeviceMapping{PathOnHost: parts[0], PathInContainer: parts[0], CgroupPermissions: "rwm"}
		if parts[1] != "" {
			m.PathInContainer = parts[1]
		}
		if parts[2] != "" {
			m.CgroupPermissions = parts[2]
		}
		c.devices = append(c.devices, m)
	}
	c.image.AccountOptional = r.Flag("auth_soft_fail")
	readPullTimeout(r, &c)
	r.Each("auth", func(in *options.Reader) {
		c.image.Account = images.Account{Username: in.Str("username"), Password: in.Str("password")}
		if in.Has("tls_verify") && !in.Flag("tls_verify") {
			in.Problem("tls_verify: is not a job's to say: podman's registries.conf has insecure registries")
		}
	})
	refusePodman(r)
	return c
}

// PodmanRefused are the keys of Nomad's podman driver that cannot be kept, each with the reason.
var PodmanRefused = map[string]string{ // a constant
	"init_path":         "the container's first process is drover-init",
	"memory_swap":       noSwap,
	"memory_swappiness": noSwap,
	"userns":            "the task's folders belong to the machine's users",
}

const noSwap = "a task has the memory of its resources, and no swap"

// refusePodman reads those keys, and accepts only values that change nothing.
func refusePodman(r *options.Reader) {
	r.Flag("init") // there always is one: ours
	refusal(r, r.Str("init_path") != "", "init_path", PodmanRefused)
	userns := r.Str("userns")
	refusal(r, userns != "" && userns != hostMode, "userns", PodmanRefused)
	refusal(r, r.Str("memory_swap") != "", "memory_swap", PodmanRefused)
	refusal(r, r.Num("memory_swappiness", 0, 100) != 0, "memory_swappiness", PodmanRefused)
	if s := r.Str("socket"); s != "" && s != "default" {
		r.Problem("socket: %q is not there: this node has one socket of podman's, \"default\"", s)
	}
	r.Each("logging", func(in *options.Reader) {
		in.Dict("options")
		switch name := in.Str("driver"); name {
		case "", "nomad", "none", "k8s-file":
		default:
			in.Problem("driver: %s is not possible: the supervisor writes the task's logs itself, into the allocation", name)
		}
	})
}

// size reads a number of bytes as podman has it: "64m".
func size(r *options.Reader, key string) int64 {
	text := strings.ToLower(r.Str(key))
	if text == "" || strings.Contains(text, "${") {
		return 0
	}
	shift := 0
	if i := strings.IndexByte("bkmg", text[len(text)-1]); i >= 0 {
		text, shift = text[:len(text)-1], 10*i
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > maxBytes>>shift {
		r.Problem("%s: %q is no size such as 64m", key, r.Str(key))
		return 0
	}
	return n << shift
}

// readPortMap reads the older form of ports: the container's port of each label.
func readPortMap(r *options.Reader) map[string]int {
	out := map[string]int{}
	for label, text := range r.Dict("port_map") {
		n, err := strconv.Atoi(text)
		if (err != nil || n < 1 || n > 65535) && !strings.Contains(text, "${") {
			r.Problem("port_map: %q of %q is no port", text, label)
		}
		out[label] = n
	}
	return out
}
