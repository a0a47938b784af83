package docker

import (
	"slices"
	"strings"

	"github.com/moby/moby/api/types/container"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/docker/images"
	"github.com/drover-project/drover/internal/node/driver/options"
)

// taskConfig is Task.Config of this driver, under Nomad's names.
type taskConfig struct {
	image      images.Request
	command    string
	args       []string
	entrypoint []string
	hasEntry   bool
	workDir    string
	hostname   string

	network    string
	joined     bool // network is the container that holds the group's
	wired      bool // a warm runner on the bridge of sandboxes
	aliases    []string
	ports      []string
	portMap    map[string]int // the container's port by label
	extraHosts []string
	dns        []string
	dnsSearch  []string
	dnsOptions []string

	mounts   []mountConfig
	volumes  []string
	tmpfs    []string
	readOnly bool
	shmSize  int64

	capAdd, capDrop []string
	securityOpt     []string
	privileged      bool
	runtime         string
	pidMode         string
	ipcMode         string
	usernsMode      string
	sysctl          map[string]string

	cpuHard    bool
	cpuPeriod  int64
	memoryHard int64 // MB
	memorySoft int64 // bytes
	pids       int64
	ulimit     map[string]string
	labels     map[string]string
	devices    []container.DeviceMapping
	storage    map[string]string

	cpus                   string // processors, as docker and the kernel list them
	utsMode, cgroupns, mac string
	ipv4, ipv6             string

	tty, input   bool     // of the main task
	groups       []string // beside those that the user has in the image
	volumeDriver string   // of volumes by name in volumes
}

// mountConfig is one block mount or mounts; which fields count depends on the kind, as in docker.
type mountConfig struct {
	kind, source, target string
	readOnly             bool
	propagation          string
	size                 int64 // bytes, of a tmpfs
	mode                 int64
	noCopy               bool // of a volume, as its labels and its driver are
	labels               map[string]string
	driver               string
	driverOptions        map[string]string
}

// Bounds that no machine reaches, so that a number cannot overflow where it is shifted or multiplied.
const (
	maxPids   = 1 << 22
	maxMemory = 1 << 30 // MB
	maxBytes  = 1 << 50
)

// Validate checks Task.Config; all problems at once, each naming its key.
func (d *Driver) Validate(task *drover.Task) error {
	_, err := d.parse(task.Config, nil)
	return err
}

// parse reads the configuration, of a start or, without a spec, of a job that is only checked. Errors: Invalid with all
// problems.
func (d *Driver) parse(config map[string]any, spec *driver.Spec) (taskConfig, error) {
	r := options.New(config)
	keys := read
	if d.cfg.Podman {
		keys = readPodman
	}
	c := keys(r)
	d.check(&c, r)
	leave{d, &c, spec}.check(r)
	return c, r.Done()
}

// Keys are those of a task's configuration.
func Keys() []string { return options.Keys(func(r *options.Reader) { read(r) }) }

// read takes every key once, so that the reader can name those which nobody has taken.
func read(r *options.Reader) taskConfig {
	c := taskConfig{
		image:   images.Request{Ref: r.Str("image"), Load: r.Str("load"), ForcePull: r.Flag("force_pull")},
		command: r.Str("command"), args: r.Strs("args"), entrypoint: r.Strs("entrypoint"), hasEntry: r.Has("entrypoint"),
		workDir: r.Str("work_dir"), hostname: r.Str("hostname"),
		network: r.Str("network_mode"), aliases: r.Strs("network_aliases"), ports: r.Strs("ports"), extraHosts: r.Strs("extra_hosts"),
		dns: r.Strs("dns_servers"), dnsSearch: r.Strs("dns_search_domains"), dnsOptions: r.Strs("dns_options"),
		volumes: r.Strs("volumes"), readOnly: r.Flag("readonly_rootfs"), shmSize: r.Num("shm_size", 0, maxBytes),
		capAdd: r.Strs("cap_add"), capDrop: r.Strs("cap_drop"), securityOpt: r.Strs("security_opt"), privileged: r.Flag("privileged"),
		runtime: r.Str("runtime"), pidMode: r.Str("pid_mode"), ipcMode: r.Str("ipc_mode"), usernsMode: r.Str("userns_mode"),
		sysctl:  r.Dict("sysctl"),
		cpuHard: r.Flag("cpu_hard_limit"), cpuPeriod: r.Num("cpu_cfs_period", 1000, 1_000_000),
		memoryHard: r.Num("memory_hard_limit", 0, maxMemory),
		portMap:    readPortMap(r),
		pids:       r.Num("pids_limit", -1, maxPids), ulimit: r.Dict("ulimit"), labels: r.Dict("labels"), tmpfs: r.Strs("tmpfs"),
	}
	r.Flag("init") // there always is one: ours
	r.Each("auth", func(in *options.Reader) {
		c.image.Account = images.Account{Username: in.Str("username"), Password: in.Str("password"), Server: in.Str("server_address")}
		in.Str("email") // older files have it
	})
	readRare(r, &c)
	for _, key := range []string{"mounts", "mount"} {
		r.Each(key, func(in *options.Reader) { c.mounts = append(c.mounts, readMount(in)) })
	}
	return c
}

// readMount reads one block mount or mounts.
func readMount(r *options.Reader) mountConfig {
	m := mountConfig{kind: r.Str("type"), source: r.Str("source"), target: r.Str("target"), readOnly: r.Flag("readonly")}
	r.Each("bind_options", func(in *options.Reader) { m.propagation = in.Str("propagation") })
	r.Each("tmpfs_options", func(in *options.Reader) { m.size, m.mode = in.Num("size", 0, maxBytes), in.Num("mode", 0, 0o7777) })
	r.Each("volume_options", func(in *options.Reader) {
		m.noCopy, m.labels = in.Flag("no_copy"), in.Dict("labels")
		in.Block("driver_config", func(d *options.Reader) {
			m.driver, m.driverOptions = d.Str("name"), d.Dict("options")
		})
	})
	if m.kind == "" {
		m.kind = "volume" // as Nomad has it
	}
	return m
}

// check complains about values that docker would refuse, or take for something else, at the start.
func (d *Driver) check(c *taskConfig, r *options.Reader) {
	if c.image.Ref == "" {
		r.Problem("image: is missing")
	}
	if !options.Absolute(c.workDir) {
		r.Problem("%s: %q is not an absolute path", d.keyOf("work_dir"), c.workDir)
	}
	if d.cfg.Pids > 0 && (c.pids > d.cfg.Pids || c.pids < 0) {
		r.Problem("pids_limit: %d is over this node's %d", c.pids, d.cfg.Pids)
	}
	checkMounts(c, r)
	if _, err := ulimits(c.ulimit); err != nil {
		r.Problem("%w", err)
	}
	for _, a := range c.dns {
		if _, err := parseAddr(a); err != nil {
			r.Problem("dns_servers: %w", err)
		}
	}
	for _, h := range c.extraHosts {
		if !strings.Contains(h, ":") {
			r.Problem("extra_hosts: %q is not name:address", h)
		}
	}
}

// daemonCaps are what docker gives to containers of which nothing is said.
var daemonCaps = []string{ // a constant
	"audit_write", "chown", "dac_override", "fowner", "fsetid", "kill", "mknod", "net_bind_service", "net_raw", "setfcap",
	"setgid", "setpcap", "setuid", "sys_chroot",
}

// riskyCaps are those of them that a task has only when the node allows them: to make device files, and to send packets in
// others' names. A warm runner, whose code is unknown, has as few as a sandbox.
var (
	riskyCaps  = []string{"mknod", "net_raw"}       // a constant
	runnerCaps = []string{"audit_write", "setfcap"} // a constant
)

// neededCaps are drover-init's, by number: to start programs as their users, without what they may not have, and to end
// them. It keeps those that a task dropped to itself.
var neededCaps = map[string]uint{"DAC_OVERRIDE": 1, "KILL": 5, "SETGID": 6, "SETUID": 7, "SETPCAP": 8} // a constant

// withheld are those of them that the task's programs do not get, as bits.
func (d *Driver) withheld(spec *driver.Spec, c taskConfig) (mask uint64) {
	drop := d.dropped(spec, c)
	for name, bit := range neededCaps {
		if (options.HasCap(drop, name) || options.HasCap(drop, "all")) && !options.HasCap(c.capAdd, name) && !c.privileged {
			mask |= 1 << bit
		}
	}
	return mask
}

// allowsCap reports whether a job may add it.
func (d *Driver) allowsCap(name string) bool {
	// A list of the node's is exact. Without one a job may add what docker gives anyway, less the risky ones.
	if len(d.cfg.AllowCaps) == 0 {
		return d.cfg.AllowPrivileged || slices.Contains(daemonCaps, name) && !slices.Contains(riskyCaps, name)
	}
	return options.HasCap(d.cfg.AllowCaps, name) || options.HasCap(d.cfg.AllowCaps, "all")
}

// dropped are those of docker's own that the task does not get, and those that it gives up.
func (d *Driver) dropped(spec *driver.Spec, c taskConfig) (out []string) {
	for _, n := range daemonCaps {
		given := d.allowsCap(n) && (len(d.cfg.AllowCaps) > 0 || !slices.Contains(riskyCaps, n))
		if spec.Pool && (slices.Contains(riskyCaps, n) || slices.Contains(runnerCaps, n)) {
			given = false
		}
		if !given && !options.HasCap(c.capAdd, n) && !c.privileged {
			out = append(out, n)
		}
	}
	return append(out, c.capDrop...)
}
