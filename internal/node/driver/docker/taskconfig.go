package docker

import (
	"errors"
	"slices"
	"strings"

	"drover"
)

// taskConfig is Task.Config of this driver, under Nomad's names.
type taskConfig struct {
	image, load string
	forcePull   bool
	auth        auth
	command     string
	args        []string
	entrypoint  []string
	hasEntry    bool
	workDir     string
	hostname    string

	network    string
	aliases    []string
	ports      []string
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
	pids       int64
	ulimit     map[string]string
	labels     map[string]string
}

type auth struct{ username, password, server string }

type mountConfig struct {
	kind, source, target string
	readOnly             bool
	propagation          string
	size                 int64 // bytes, of a tmpfs
	mode                 int64
}

const (
	maxPids   = 1 << 22
	maxMemory = 1 << 30 // MB
	maxBytes  = 1 << 50
)

// Validate checks Task.Config; all problems at once, each naming its key.
func (d *Driver) Validate(task *drover.Task) error {
	_, err := d.parse(task.Config)
	return err
}

// parse reads the configuration. Errors: Invalid with all problems.
func (d *Driver) parse(config map[string]any) (taskConfig, error) {
	r := newReader(config)
	c := taskConfig{
		image: r.str("image"), load: r.str("load"), forcePull: r.flag("force_pull"),
		command: r.str("command"), args: r.strs("args"), entrypoint: r.strs("entrypoint"), hasEntry: config["entrypoint"] != nil,
		workDir: r.str("work_dir"), hostname: r.str("hostname"),
		network: r.str("network_mode"), aliases: r.strs("network_aliases"), ports: r.strs("ports"), extraHosts: r.strs("extra_hosts"),
		dns: r.strs("dns_servers"), dnsSearch: r.strs("dns_search_domains"), dnsOptions: r.strs("dns_options"),
		volumes: r.strs("volumes"), readOnly: r.flag("readonly_rootfs"), shmSize: r.num("shm_size", 0, maxBytes),
		capAdd: r.strs("cap_add"), capDrop: r.strs("cap_drop"), securityOpt: r.strs("security_opt"), privileged: r.flag("privileged"),
		runtime: r.str("runtime"), pidMode: r.str("pid_mode"), ipcMode: r.str("ipc_mode"), usernsMode: r.str("userns_mode"), sysctl: r.dict("sysctl"),
		cpuHard: r.flag("cpu_hard_limit"), cpuPeriod: r.num("cpu_cfs_period", 1000, 1_000_000), memoryHard: r.num("memory_hard_limit", 0, maxMemory),
		pids: r.num("pids_limit", -1, maxPids), ulimit: r.dict("ulimit"), labels: r.dict("labels"), tmpfs: r.strs("tmpfs"),
	}
	r.flag("init") // there always is one: ours
	r.each("auth", func(in *reader) {
		c.auth = auth{in.str("username"), in.str("password"), in.str("server_address")}
		in.str("email") // older files have it
	})
	for _, key := range []string{"mounts", "mount"} {
		r.each(key, func(in *reader) { c.mounts = append(c.mounts, readMount(in)) })
	}
	d.check(&c, r)
	r.unknown()
	if len(r.problems) > 0 {
		return c, drover.Errorf(drover.Invalid, "%w", errors.Join(r.problems...))
	}
	return c, nil
}

func readMount(r *reader) mountConfig {
	m := mountConfig{kind: r.str("type"), source: r.str("source"), target: r.str("target"), readOnly: r.flag("readonly")}
	r.each("bind_options", func(in *reader) { m.propagation = in.str("propagation") })
	r.each("tmpfs_options", func(in *reader) { m.size, m.mode = in.num("size", 0, maxBytes), in.num("mode", 0, 0o7777) })
	r.each("volume_options", func(in *reader) {
		in.flag("no_copy")
		in.dict("labels")
		in.blocks("driver_config")
		r.problem("volume_options: are not supported: the volume must be there, or is made with docker's defaults")
	})
	if m.kind == "" {
		m.kind = "volume" // as Nomad has it
	}
	return m
}

func (d *Driver) check(c *taskConfig, r *reader) {
	if c.image == "" {
		r.problem("image: is missing")
	}
	if c.workDir != "" && !strings.HasPrefix(c.workDir, "/") {
		r.problem("work_dir: %q is not an absolute path", c.workDir)
	}
	if c.privileged && !d.cfg.AllowPrivileged {
		r.problem("privileged: this node does not allow it (plugin \"docker\" { config { allow_privileged = true } })")
	}
	for key, mode := range map[string]string{"pid_mode": c.pidMode, "ipc_mode": c.ipcMode, "userns_mode": c.usernsMode} {
		if mode == "host" && !d.cfg.AllowPrivileged {
			r.problem("%s: host needs allow_privileged on this node", key)
		}
	}
	for _, o := range c.securityOpt {
		if strings.Contains(o, "unconfined") && !d.cfg.AllowPrivileged {
			r.problem("security_opt: %q needs allow_privileged on this node", o)
		}
	}
	d.checkMounts(c, r)
	d.checkCaps(c, r)
	if _, err := ulimits(c.ulimit); err != nil {
		r.problems = append(r.problems, err)
	}
	for _, a := range c.dns {
		if _, err := parseAddr(a); err != nil {
			r.problem("dns_servers: %w", err)
		}
	}
	for _, h := range c.extraHosts {
		if !strings.Contains(h, ":") {
			r.problem("extra_hosts: %q is not name:address", h)
		}
	}
}

// checkRuntime refuses what could not work.
func checkRuntime(name string) error {
	if strings.Contains(name, "runsc") {
		return drover.Errorf(drover.NotImplemented, "runtime %s: gVisor does not let drover-init take its socket from the agent, and tasks without drover-init are not there yet", name)
	}
	return nil
}

// docker's default set, which needs nobody's leave.
var defaultCaps = []string{ //nolint:gochecknoglobals // a constant
	"audit_write", "chown", "dac_override", "fowner", "fsetid", "kill", "mknod", "net_bind_service", "net_raw", "setfcap",
	"setgid", "setpcap", "setuid", "sys_chroot",
}

// neededCaps are drover-init's: to start programs as their users and to end them.
var neededCaps = []string{"SETUID", "SETGID", "KILL", "DAC_OVERRIDE"} //nolint:gochecknoglobals // a constant

func capName(name string) string { return strings.TrimPrefix(strings.ToLower(name), "cap_") }

func (d *Driver) checkCaps(c *taskConfig, r *reader) {
	for _, name := range c.capAdd {
		n := capName(name)
		allowed := slices.ContainsFunc(d.cfg.AllowCaps, func(a string) bool { return capName(a) == n || capName(a) == "all" })
		if !allowed && !d.cfg.AllowPrivileged && !slices.Contains(defaultCaps, n) {
			r.problem("cap_add: %s is not allowed on this node (allow_caps)", n)
		}
	}
}
