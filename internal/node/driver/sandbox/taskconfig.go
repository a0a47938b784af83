package sandbox

import (
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/driver/options"
	"github.com/drover-project/drover/network"
)

// taskConfig is Task.Config of this driver.
type taskConfig struct {
	image      string
	command    string
	args       []string
	entrypoint []string
	hasEntry   bool
	workDir    string
	hostname   string
	network    string             // none, host, bridge; "" = as the group says
	dns        *network.DNSConfig // the bridge's, for a group that names no servers
	ports      []string
	hasPorts   bool
	pids       int64
	cpuHard    bool
	diskMB     int64
	readOnly   bool
	mounts     []mountConfig
	capAdd     []string
	username   string // to the registry
	password   string
	pull       bool
	capDrop    []string
	task       *Task // what another driver asked for; nil for the sandbox driver's own tasks
}

// mountConfig is one block mounts. A relative source is in the task's folder, an absolute one needs the node's leave.
type mountConfig struct {
	source, target string
	readOnly       bool
}

// Defaults and bounds: 256 processes and 300 MB are for a job that says nothing; the highest values only keep numbers from overflowing.
const (
	defaultPids   = 256
	defaultDiskMB = 300
	maxDiskMB     = 1 << 20
	maxPids       = 1 << 20
)

// Validate checks Task.Config; all problems at once, each naming its key.
func (d *Driver) Validate(task *drover.Task) error {
	_, err := d.parse(task.Config)
	return err
}

// NeedsFolders reports whether anything of the allocation's folder is ever used: not by a warm runner, which writes no
// logs, and whose /alloc, /local and /secrets are in memory (see addAllocation).
func (d *Driver) NeedsFolders(group *drover.TaskGroup, task *drover.Task) bool {
	c, err := d.parse(task.Config)
	return group.Pool == nil || err != nil || c.hasProgram() || len(c.mounts) > 0
}

// hasProgram reports whether the configuration names one, which a warm runner may do without.
func (c *taskConfig) hasProgram() bool {
	return c.command != "" || len(c.args) > 0 || len(c.entrypoint) > 0
}

// parse reads the configuration. Errors: Invalid with all problems.
func (d *Driver) parse(config map[string]any) (taskConfig, error) {
	r := options.New(config)
	c := d.read(r)
	return c, r.Done()
}

// Keys are those of a task's configuration.
func Keys() []string {
	d := &Driver{}
	return options.Keys(func(r *options.Reader) { d.read(r) })
}

func (d *Driver) read(r *options.Reader) taskConfig {
	c := taskConfig{
		image: r.Str("image"), command: r.Str("command"), args: r.Strs("args"), workDir: r.Str("work_dir"),
		hostname: r.Str("hostname"), network: r.Str("network_mode"), pids: r.Num("pids_limit", 1, maxPids),
		cpuHard: r.Flag("cpu_hard_limit"), diskMB: r.Num("disk_mb", 1, maxDiskMB), readOnly: r.Flag("readonly_rootfs"),
		capAdd: r.Strs("cap_add"), capDrop: r.Strs("cap_drop"), pull: r.Flag("force_pull"),
	}
	r.Block("auth", func(in *options.Reader) { c.username, c.password = in.Str("username"), in.Str("password") })
	c.entrypoint, c.hasEntry = r.Strs("entrypoint"), r.Has("entrypoint")
	c.ports, c.hasPorts = r.Strs("ports"), r.Has("ports")
	r.Each("mounts", func(in *options.Reader) {
		c.mounts = append(c.mounts, mountConfig{source: in.Str("source"), target: in.Str("target"), readOnly: in.Flag("readonly")})
	})
	if r.Flag("privileged") {
		r.Problem("privileged: the sandbox driver has no privileged mode; use raw_exec or docker")
	}
	d.check(&c, r)
	return c
}

// check sets defaults, and complains about what is wrong or lacks the node's leave.
func (d *Driver) check(c *taskConfig, r *options.Reader) {
	if c.image == "" {
		c.image = "host"
	}
	if c.pids == 0 {
		c.pids = defaultPids
	}
	switch c.network {
	case "", networkNone, networkHost, networkBridge:
	default:
		r.Problem("network_mode: %q is none of none, host, bridge", c.network)
	}
	if c.network == networkHost && !d.cfg.AllowHostNetwork {
		r.Problem("network_mode: host %s", hostLeave)
	}
	if !options.Absolute(c.workDir) {
		r.Problem("work_dir: %q is not an absolute path", c.workDir)
	}
	if len(c.hostname) > 63 {
		r.Problem("hostname: longer than 63 characters")
	}
	for _, m := range c.mounts {
		if !strings.HasPrefix(m.target, "/") || m.target == "/" {
			r.Problem("mounts: target %q is not an absolute path below /", m.target)
		}
		if m.source == "" {
			r.Problem("mounts: the mount at %q has no source", m.target)
		}
		if strings.HasPrefix(m.source, "/") && !d.cfg.AllowHostMounts {
			r.Problem("mounts: source %q is outside the allocation, which this node does not allow (allow_host_mounts)", m.source)
		}
	}
	if _, err := d.caps(*c); err != nil {
		r.Problem("%w", err)
	}
}
