package chroot

import (
	"cmp"
	"context"
	"slices"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/options"
	"github.com/drover-project/drover/internal/node/driver/sandbox"
	"github.com/drover-project/drover/internal/node/driver/supervised"
	"github.com/drover-project/drover/internal/node/image"
	"github.com/drover-project/drover/internal/validation"
)

// Names of the drivers in jobs.
const (
	Exec = "exec"
	Java = "java"
)

// Config of one of the drivers.
type Config struct {
	Sandbox *sandbox.Driver
	Images  *image.Store
	Clock   clock.Clock
	// Trees are parts of the machine that tasks see, by path: where they see them; nil: image.DefaultTrees.
	Trees map[string]string
	// AllowCaps are capabilities that tasks may have, "all" for all; nil: Nomad's default.
	AllowCaps []string
	// HostIPC lets tasks share the machine's System V IPC, and does it for those that say nothing.
	HostIPC bool
	// AllowHostNetwork lets tasks share the machine's network.
	AllowHostNetwork bool
	// DeniedUIDs and DeniedGIDs are users and groups that no task runs as.
	DeniedUIDs, DeniedGIDs validation.IDs
	// Path is where java is looked for; "" = the agent's PATH.
	Path string
}

// Driver is exec or java. Its methods may be called at once.
type Driver struct {
	cfg  Config
	name string
	java javaProbe
}

var _ driver.Devicer = (*Driver)(nil)

// NewExec returns the driver exec. No I/O.
func NewExec(cfg Config) *Driver { return newDriver(Exec, cfg) }

// NewJava returns the driver java. No I/O.
func NewJava(cfg Config) *Driver { return newDriver(Java, cfg) }

func newDriver(name string, cfg Config) *Driver {
	if cfg.Trees == nil {
		cfg.Trees = image.DefaultTrees()
	}
	if cfg.AllowCaps == nil {
		cfg.AllowCaps = usualCaps
	}
	return &Driver{cfg: cfg, name: name}
}

// Name returns "exec" or "java".
func (d *Driver) Name() string { return d.name }

// GivesDevices implements driver.Devicer.
func (d *Driver) GivesDevices() string { return d.cfg.Sandbox.GivesDevices() }

// Fingerprint says whether sandboxes can be had here with root's rights, as Nomad's driver needs them, and with a network.
func (d *Driver) Fingerprint(ctx context.Context) drover.DriverInfo {
	info, unfit := d.cfg.Sandbox.FingerprintAs(ctx, d.name, d.cfg.AllowHostNetwork)
	if !info.Healthy {
		return info
	}
	if _, err := d.cfg.Images.PrepareTrees(d.cfg.Trees); err != nil { // also so that no start has to wait
		return unfit(err.Error())
	}
	if d.name == Java {
		found, err := d.findJava(ctx)
		if err != nil {
			return unfit(err.Error())
		}
		found.attributes(info.Attributes)
	}
	return info
}

// Attach implements driver.Driver.
func (d *Driver) Attach(ctx context.Context, state driver.State) (driver.Handle, error) {
	return d.cfg.Sandbox.Attach(ctx, state)
}

// Validate checks Task.Config; all problems at once, each naming its key.
func (d *Driver) Validate(task *drover.Task) error {
	c, err := d.parse(task.Config)
	if err == nil {
		err = c.complete(d.name)
	}
	return err
}

// defaultUser is who a task runs as that names nobody, as on Nomad.
const defaultUser = "nobody"

// Start implements driver.Driver.
func (d *Driver) Start(ctx context.Context, spec driver.Spec) (driver.Handle, error) {
	task, err := d.task(ctx, &spec)
	if err != nil {
		return nil, &driver.StartError{Recoverable: drover.CodeOf(err) == drover.Unavailable, Err: err}
	}
	return d.cfg.Sandbox.StartTask(ctx, spec, task)
}

// task is what the sandbox driver is asked for.
func (d *Driver) task(ctx context.Context, spec *driver.Spec) (t sandbox.Task, err error) {
	c, err := d.parse(spec.Config)
	if err != nil {
		return t, err
	}
	t = sandbox.Task{
		Driver: d.name, WorkDir: supervised.InsidePaths(spec.Dirs).Replace(c.workDir), User: cmp.Or(spec.User, defaultUser),
		Trees: d.cfg.Trees, Caps: c.caps, Ambient: true, Pids: c.pids, HostIPC: c.ipcMode == host, AllowHostNetwork: d.cfg.AllowHostNetwork,
	}
	if err := d.permitted(t.User); err != nil {
		return t, err
	}
	if spec.Pool && c.command == "" {
		return t, nil // a warm runner
	}
	if err := c.complete(d.name); err != nil {
		return t, err
	}
	if d.name == Java {
		t.Argv, err = d.javaCommand(ctx, &c)
		return t, err
	}
	program, err := findProgram(spec, c.command)
	t.Argv = append([]string{program}, c.args...)
	return t, err
}

// permitted refuses users and groups that the node's configuration denies. Errors: Forbidden, Invalid.
func (d *Driver) permitted(user string) error {
	if len(d.cfg.DeniedUIDs) == 0 && len(d.cfg.DeniedGIDs) == 0 {
		return nil
	}
	rootfs, err := d.cfg.Images.PrepareTrees(d.cfg.Trees)
	if err != nil {
		return err
	}
	uid, gid, groups, err := rootfs.LookupUser(user)
	if err != nil {
		return err
	}
	return options.Permitted(user, uid, append(groups, gid), d.cfg.DeniedUIDs, d.cfg.DeniedGIDs)
}

// taskConfig is Task.Config of both drivers.
type taskConfig struct {
	command string // exec
	args    []string
	workDir string
	ipcMode string
	caps    uint64
	pids    int64

	jarPath, class, classPath string // java
	jvmOptions                []string
}

// Modes of namespaces.
const (
	private = "private"
	host    = "host"
)

// Bounds of processes. Nomad has none; a JVM may have a thousand threads, and a fork bomb must end before the machine does.
const (
	defaultPids = 8192
	maxPids     = 1 << 20
)

// parse reads the configuration. Errors: Invalid with all problems.
func (d *Driver) parse(config map[string]any) (taskConfig, error) {
	r := options.New(config)
	c := d.read(r)
	return c, r.Done()
}

// Keys are those of a task's configuration, by the driver's name.
func Keys(name string) []string {
	d := newDriver(name, Config{})
	return options.Keys(func(r *options.Reader) { d.read(r) })
}

func (d *Driver) read(r *options.Reader) (c taskConfig) {
	c = taskConfig{args: r.Strs("args"), workDir: r.Str("work_dir"), pids: r.Num("pids_limit", 1, maxPids)}
	if c.pids == 0 {
		c.pids = defaultPids
	}
	switch d.name {
	case Exec:
		c.command = r.Str("command")
	case Java:
		c.jarPath, c.class, c.classPath, c.jvmOptions = r.Str("jar_path"), r.Str("class"), r.Str("class_path"), r.Strs("jvm_options")
	}
	if !options.Absolute(c.workDir) {
		r.Problem("work_dir: %q is not an absolute path", c.workDir)
	}
	d.modes(&c, r)
	var err error
	if c.caps, err = d.capabilities(r.Strs("cap_add"), r.Strs("cap_drop")); err != nil {
		r.Problem("%w", err)
	}
	return c
}

// modes reads the namespaces. A task is held by its process namespace, and ended with it: without one it could see, and as the same
// user end, what others run.
func (d *Driver) modes(c *taskConfig, r *options.Reader) {
	switch mode := r.Str("pid_mode"); mode {
	case "", private:
	case host:
		r.Problem("pid_mode: host is not to be had: a task is ended with its process namespace; the driver raw_exec shares the machine's")
	default:
		r.Problem("pid_mode: %q is none of private, host", mode)
	}
	switch c.ipcMode = r.Str("ipc_mode"); c.ipcMode {
	case private:
	case "":
		if c.ipcMode = private; d.cfg.HostIPC {
			c.ipcMode = host
		}
	case host:
		if !d.cfg.HostIPC {
			r.Problem("ipc_mode: host needs default_ipc_mode = \"host\" on this node (plugin %q)", d.name)
		}
	default:
		r.Problem("ipc_mode: %q is none of private, host", c.ipcMode)
	}
}

// complete tells what a task lacks. Errors: Invalid.
func (c *taskConfig) complete(driver string) error {
	switch {
	case driver == Exec && c.command == "":
		return drover.Errorf(drover.Invalid, "command: an exec task needs a program")
	case driver == Java && c.jarPath == "" && c.class == "":
		return drover.Errorf(drover.Invalid, "jar_path: a java task needs a jar, or a class")
	}
	return nil
}

// usualCaps are what tasks have and may have unless allow_caps says otherwise, as on Nomad.
var usualCaps = []string{
	"audit_write", "chown", "dac_override", "fowner", "fsetid", "kill", "mknod", "net_bind_service", "setfcap", "setgid", "setpcap",
	"setuid", "sys_chroot",
}

// all is every capability.
const all = "all"

// capabilities are the usual ones without the dropped and with the added, which must all be allowed. Only those count that mean
// something in a task's own namespaces. Errors name the key.
func (d *Driver) capabilities(add, drop []string) (uint64, error) {
	allowed := names(d.cfg.AllowCaps)
	have := slices.Clone(usualCaps)
	if len(drop) == 0 && len(add) == 0 { // nothing was asked for: what is not allowed is left out
		have = slices.DeleteFunc(have, func(c string) bool { return !slices.Contains(allowed, c) })
	}
	for _, key := range []struct {
		name string
		list []string
	}{{"cap_drop", drop}, {"cap_add", add}} {
		for _, c := range key.list {
			if _, err := sandbox.Caps([]string{options.CapName(c)}); err != nil && options.CapName(c) != all {
				return 0, drover.Errorf(drover.Invalid, "%s: %w", key.name, err)
			}
		}
	}
	gone := names(drop)
	have = slices.DeleteFunc(have, func(c string) bool { return slices.Contains(gone, c) })
	if slices.ContainsFunc(add, func(c string) bool { return options.CapName(c) == all }) {
		have = append(have, allowed...)
	} else {
		have = append(have, names(add)...)
	}
	for _, c := range have {
		if !slices.Contains(allowed, c) {
			return 0, drover.Errorf(drover.Invalid, "cap_add: this node does not allow %q (allow_caps of plugin %q): drop it, or do not add it", c,
				d.name)
		}
	}
	return sandbox.Caps(have)
}

// names are capabilities without case and prefix; "all" is all that a sandbox can have.
func names(list []string) (plain []string) {
	for _, c := range list {
		if name := options.CapName(c); name == all {
			plain = append(plain, sandbox.KnownCaps()...)
		} else {
			plain = append(plain, name)
		}
	}
	return plain
}
