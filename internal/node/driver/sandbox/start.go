package sandbox

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/node/cgroup"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/grouped"
	"github.com/drover-project/drover/internal/node/driver/supervised"
	"github.com/drover-project/drover/internal/node/image"
	"github.com/drover-project/drover/internal/node/supervisor"
)

// Start starts a sandbox, and its command if there is one. Without a command it is a warm runner: only the supervisor
// runs. Errors: *driver.StartError; nothing is left behind.
func (d *Driver) Start(ctx context.Context, spec driver.Spec) (driver.Handle, error) {
	config, err := d.parse(spec.Config)
	if err != nil {
		return nil, startError(err)
	}
	return d.started(d.start(ctx, &spec, config))
}

// started is what Start returns.
func (d *Driver) started(h *handle, err error) (driver.Handle, error) {
	if err != nil {
		return nil, startError(err)
	}
	return h, nil
}

// startError says whether another try could help.
func startError(err error) error {
	if e := (*driver.StartError)(nil); errors.As(err, &e) {
		return err
	}
	code := drover.CodeOf(err)
	fatal := code == drover.Invalid || code == drover.NotFound || code == drover.Forbidden || code == drover.NotImplemented
	return &driver.StartError{Recoverable: !fatal, Err: err}
}

// start is Start with plain errors. On any of them all that was taken so far is given back, also when ctx is over.
func (d *Driver) start(ctx context.Context, spec *driver.Spec, config taskConfig) (_ *handle, err error) {
	b := &box{spec: spec, config: config, stateDir: spec.Dirs.State, startedAt: d.cfg.Clock.Now()}
	b.disk = diskLimit{Dir: spec.Dirs.Alloc, MB: spec.DiskMB}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.free(context.WithoutCancel(ctx), b))
		}
	}()
	if b.rootfs, err = d.prepare(ctx, spec, config); err != nil {
		return nil, err
	}
	task, err := b.command(spec)
	if err != nil {
		return nil, err
	}
	if task == nil {
		spec.Log.Disabled = true // nothing would ever write them
	}
	if b.slot, err = d.ids.take(); err != nil {
		return nil, err
	}
	b.slotTaken = true
	if b.config.network, err = d.chooseNetwork(b.config, spec); err != nil {
		return nil, err
	}
	if err = d.reserveNetwork(b); err != nil {
		return nil, err
	}
	b.env = b.environment() // with the addresses that it now has
	if task != nil {
		task.Env = b.env
	}
	if b.user, err = d.defaultUser(spec, b.rootfs); err != nil {
		return nil, err
	}
	// The folder comes before the group: by it a restarted agent finds what one that was killed here left.
	d.shelf.Take(b.stateDir)
	if err = os.MkdirAll(b.stateDir, 0o700); err != nil {
		return nil, err
	}
	if d.cfg.Cgroups != nil {
		if b.group, err = d.cfg.Cgroups.Create(groupName(spec.AllocID, spec.TaskName), d.limits(spec, config), d.groupOwner(b)); err != nil {
			return nil, err
		}
	}
	client, err := d.launch(ctx, b)
	if err != nil {
		return nil, err
	}
	h := newHandle(d, b, client, b.state(spec.ID, spec.AllocID, spec.TaskName, task == nil), task == nil)
	if task == nil {
		if spec.Rehearse {
			d.rehearse(ctx, client)
		}
		return h, nil
	}
	if err = supervised.Keep(b.stateDir, h.ident); err == nil {
		err = h.StartMain(ctx, *task, b.groups(d))
	}
	if err != nil {
		_ = client.Close()
		return nil, err
	}
	h.watchDisk(ctx)
	return h, nil
}

// rehearsal bounds what takes half a millisecond.
const rehearsal = 5 * time.Second

// rehearse leads a supervisor through all of an execution but the program: its child finds no directory to start in. What
// is touched for the first time on that way, here and there, is a quarter of the time to the first byte of a runner's first
// execution. It returns how that ended.
func (d *Driver) rehearse(ctx context.Context, client *supervisor.Client) (r *execution.Receipt) {
	ctx, cancel := d.cfg.Clock.WithTimeout(ctx, rehearsal)
	defer cancel()
	s, err := client.StartExecution(ctx, execution.Spec{Argv: []string{"/proc/self/exe"}, WorkDir: "/dev/null"})
	if err != nil {
		return nil // the first execution meets that too, and tells
	}
	for err == nil {
		var f execution.Frame
		if f, err = s.Next(ctx); f.Receipt != nil {
			r = f.Receipt
		}
	}
	_ = s.Close() // it has ended
	return r
}

// prepare makes the task's image ready.
func (d *Driver) prepare(ctx context.Context, spec *driver.Spec, c taskConfig) (*image.Rootfs, error) {
	if c.task != nil {
		return d.cfg.Images.PrepareTrees(c.task.Trees)
	}
	request := c.request()
	request.SignedBy, request.Namespace = spec.SignedBy, spec.Namespace
	request.Progress = pullTeller(d.cfg.Clock, spec, c.image)
	return d.cfg.Images.Prepare(ctx, request)
}

// request is what the image store is asked for.
func (c taskConfig) request() image.Request {
	return image.Request{Ref: c.image, Username: c.username, Password: c.password, Pull: c.pull}
}

// command is what the task runs; nil for a warm runner.
func (b *box) command(spec *driver.Spec) (*supervisor.TaskSpec, error) {
	c, inside := b.config, supervised.InsidePaths(spec.Dirs)
	argv := []string{}
	if c.command != "" {
		argv = append(argv, c.command)
	}
	argv = append(argv, c.args...)
	if c.hasEntry {
		argv = append(append([]string{}, c.entrypoint...), argv...)
	} else if c.command == "" && !spec.Pool {
		// As docker has it: arguments replace the image's Cmd, not its entry point.
		if len(c.args) == 0 {
			argv = append(argv, b.rootfs.Config.Cmd...)
		}
		argv = append(append([]string{}, b.rootfs.Config.Entrypoint...), argv...)
	}
	if len(argv) == 0 {
		if spec.Pool {
			return nil, nil // a warm runner has none
		}
		return nil, drover.Errorf(drover.Invalid, "command: nothing to run: give a command, or an image that has one")
	}
	for i := range argv {
		argv[i] = inside.Replace(argv[i])
	}
	user := spec.User
	if user == "" {
		user = b.rootfs.Config.User
	}
	if user == "" {
		user = "0"
	}
	if _, err := lookupUser(b.rootfs, user); err != nil {
		return nil, err
	}
	return &supervisor.TaskSpec{Argv: argv, WorkDir: b.workDir(), User: user}, nil
}

// defaultUser is whom unprivileged executions and file requests act as: the task's, the image's unless that is root,
// and else one without rights.
func (d *Driver) defaultUser(spec *driver.Spec, rootfs *image.Rootfs) (supervisor.User, error) {
	if d.rootless {
		return supervisor.User{}, nil // the only user that there is
	}
	if spec.User != "" {
		return lookupUser(rootfs, spec.User)
	}
	if u := rootfs.Config.User; u != "" {
		if user, err := lookupUser(rootfs, u); err == nil && user.UID != 0 {
			return user, nil
		}
	}
	return supervisor.User{UID: 1000, GID: 1000}, nil // numbers, for which nothing has to be looked up
}

// limits are those of the sandbox's control group. CPU is bounded hard only on request; else it is a weight, as in Nomad.
func (d *Driver) limits(spec *driver.Spec, c taskConfig) cgroup.Limits {
	quota := 0.0
	if c.cpuHard && spec.CPUMHz > 0 && d.cfg.CoreMHz > 0 {
		quota = float64(spec.CPUMHz) / float64(d.cfg.CoreMHz)
	}
	l := grouped.Limits(spec, quota)
	l.Pids = c.pids
	return l
}

// cloneIntoGroups: on v2 the supervisor starts executions right in their group, which needs clone3.
func (d *Driver) cloneIntoGroups() bool {
	return d.cfg.Cgroups != nil && d.cfg.Cgroups.Info().Version == cgroup.V2 && !d.rootless
}

// groupOwner is the host's id of the sandbox's root, to whom its control group is delegated; without root it stays ours.
func (d *Driver) groupOwner(b *box) int {
	if d.rootless {
		return 0
	}
	return base(b.slot)
}

// groupName can be computed from a stored state, so clear finds the group of an interrupted start.
func groupName(allocID, task string) string {
	return strings.ReplaceAll(allocID+"."+task, "/", "_")
}

// free gives back everything that the sandbox holds on the host. Idempotent.
func (d *Driver) free(ctx context.Context, b *box) error {
	var errs []error
	alive := false
	if b.pid > 0 {
		err := d.kill(ctx, b)
		alive = err != nil
		errs = append(errs, err)
	}
	// Errors are collected: one thing that cannot be freed keeps no other.
	errs = append(errs, d.disconnect(ctx, b))
	if b.group != nil {
		if err := d.cfg.Cgroups.Retire(ctx, d.cfg.Clock, b.group); err != nil {
			errs = append(errs, err)
		} else {
			b.group = nil
		}
	}
	// A folder whose supervisor may live is not put on the shelf: the next start would meet its socket.
	switch {
	case b.stateDir == "":
	case alive:
		errs = append(errs, supervisor.Discard(b.stateDir))
	default:
		errs = append(errs, d.shelf.Put(b.stateDir))
	}
	if b.slotTaken {
		d.ids.release(b.slot)
		b.slotTaken = false
	}
	if b.rootfs != nil {
		b.rootfs.Release()
	}
	return errors.Join(errs...)
}
