package docker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/docker/dockererr"
	"github.com/drover-project/drover/internal/node/driver/docker/images"
	"github.com/drover-project/drover/internal/node/driver/docker/users"
	"github.com/drover-project/drover/internal/node/driver/supervised"
	"github.com/drover-project/drover/internal/node/supervisor"
)

// Start starts a container, and the task's command in it if there is one; without one it is a warm runner. Errors:
// *driver.StartError; nothing is left behind.
func (d *Driver) Start(ctx context.Context, spec driver.Spec) (driver.Handle, error) {
	h, err := d.start(ctx, &spec)
	if err != nil {
		return nil, startError(err)
	}
	return h, nil
}

// start is Start with plain errors. On any of them all that was made so far is freed, also when ctx is over.
func (d *Driver) start(ctx context.Context, spec *driver.Spec) (_ *handle, err error) {
	config, err := d.parse(spec.Config, spec)
	if err != nil {
		return nil, err
	}
	config.group(spec, d.cfg.Podman)
	if err := d.giveDevices(ctx, spec, &config); err != nil {
		return nil, err
	}
	b := &box{stateDir: spec.Dirs.State, startedAt: d.cfg.Clock.Now(), groups: d.noGroups()}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.free(context.WithoutCancel(ctx), b))
		}
	}()
	if err := d.reserve(spec, &config, b); err != nil {
		return nil, err
	}
	img, err := d.images.Get(ctx, spec, config.image)
	if client.IsErrConnectionFailed(err) && d.daemon.await(ctx, spec) {
		img, err = d.images.Get(ctx, spec, config.image)
	}
	if err != nil {
		return nil, err
	}
	b.image, b.imageRef, b.stopSignal = img.ID, img.Ref, img.StopSignal
	task, err := command(spec, config, img)
	if err != nil {
		return nil, err
	}
	if b.warm = task == nil; b.warm {
		spec.Log.Disabled = true // nothing would ever write them
	}
	b.disk = bound{Alloc: spec.Dirs.Alloc, MB: spec.DiskMB, Ends: spec.Pool}
	client, err := d.launch(ctx, spec, config, img, b)
	if err != nil {
		return nil, err
	}
	h := newHandle(d, b, client, b.state(d.Name(), spec))
	if task == nil {
		h.watchDisk(ctx)
		return h, nil
	}
	// The state is kept before the program is executed: an agent that is killed between the two must not start it twice.
	if err = supervised.Keep(b.stateDir, h.State()); err == nil {
		err = h.StartMain(ctx, *task, b.groups)
	}
	if err != nil {
		_ = client.Close()
		return nil, err
	}
	h.watchDisk(ctx)
	return h, nil
}

// launch creates and starts the container, and configures its drover-init.
func (d *Driver) launch(ctx context.Context, spec *driver.Spec, c taskConfig, img images.Image, b *box) (*supervisor.Client, error) {
	logs, err := supervised.OpenLogs(spec.Log)
	if err != nil {
		return nil, err
	}
	if logs != nil {
		defer logs.Close()
	}
	cfg := supervisor.LaunchConfig{
		ID: spec.ID, StateDir: spec.Dirs.State, LogDir: logs,
		Log:     supervisor.LogFiles{Task: spec.TaskName, MaxFiles: spec.Log.MaxFiles, MaxFileSize: spec.Log.MaxFileSize},
		WorkDir: workDir(c, img), Env: environment(spec, c, img),
		Forked: func(pid int) error { return d.settle(b, pid) }, Drop: d.withheld(spec, c),
	}
	var start starter = &handed{d: d, b: b}
	if b.attached, err = d.attaches(ctx, c.runtime); err != nil {
		return nil, err
	} else if b.attached {
		start = &attached{d: d, b: b}
	}
	if err := d.holdWire(ctx, spec, &c, b); err != nil {
		return nil, err
	}
	if err := start.prepare(cfg); err != nil {
		return nil, err
	}
	defer start.close()
	options, err := d.options(spec, c, img, start.first(spec))
	if err != nil {
		return nil, err
	}
	if b.id, err = d.create(ctx, options); err != nil {
		return nil, err
	}
	// Users are looked up in the created container, since only there the image's files can be read without running anything.
	inside := users.Files{Client: d.docker, Container: b.id}
	user, err := inside.Default(ctx, spec, img)
	if err == nil && len(c.groups) > 0 {
		user.Groups, err = inside.Groups(ctx, user, c.groups)
	}
	if err != nil {
		return nil, err
	}
	client, err := d.run(ctx, start, user, b)
	if err != nil {
		return nil, err
	}
	if b.disk.Layer == "" {
		b.disk.Layer = d.layerOf(ctx, b.id, client.Pid())
	}
	b.disk.Files = d.filesOf(ctx, b.id)
	if b.link == nil {
		b.network, err = d.address(ctx, c, b.id)
	} else {
		err = d.connectWire(b, client.Pid())
	}
	if err != nil {
		_ = client.Close()
		return nil, err
	}
	return client, nil
}

// create makes the container. One of the same name that an earlier start left is ours to remove. When ctx ends meanwhile,
// the daemon's answer is waited for all the same, as it may have made the container, which must be known to be removed.
func (d *Driver) create(ctx context.Context, options client.ContainerCreateOptions) (string, error) {
	d.remember(options.Name)
	defer d.forget(options.Name) // it is known by its id, if it was made
	asked := ctx
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(asked, func() { d.cfg.Clock.AfterFunc(d.cfg.RemoveWait, cancel) })()
	made, err := d.docker.ContainerCreate(ctx, options)
	if nameTaken(err) {
		old, inspectErr := d.docker.ContainerInspect(ctx, options.Name, client.ContainerInspectOptions{})
		if inspectErr == nil && old.Container.Config != nil && old.Container.Config.Labels[labelOwner] == d.cfg.Owner {
			if err := d.remove(ctx, old.Container.ID); err != nil {
				return "", err
			}
		}
		// Also if the other container was not ours: its owner may have removed it since, and otherwise the conflict is the answer.
		made, err = d.docker.ContainerCreate(ctx, options)
	}
	if err != nil {
		return "", fmt.Errorf("creating the container: %w", dockererr.Of(err))
	}
	for _, w := range made.Warnings {
		d.cfg.Log.Debug("dockerd warns", "container", made.ID, "warning", w)
	}
	d.remember(made.ID)
	return made.ID, nil
}

// nameTaken: podman tells a name that is in use as an error of its own (500).
func nameTaken(err error) bool {
	return cerrdefs.IsConflict(err) || err != nil && strings.Contains(err.Error(), "is already in use")
}

// run starts the container and waits for its drover-init; not longer than it lives.
func (d *Driver) run(ctx context.Context, start starter, user supervisor.User, b *box) (*supervisor.Client, error) {
	alive, died := context.WithCancelCause(ctx)
	defer died(nil)
	wait := d.docker.ContainerWait(alive, b.id, client.ContainerWaitOptions{Condition: container.WaitConditionNextExit})
	go func() { // ends when the container does, or with alive
		select {
		case r := <-wait.Result:
			died(drover.Errorf(drover.Internal, "the container ended with %d before it was ready", r.StatusCode))
		case err := <-wait.Error:
			if alive.Err() == nil {
				d.cfg.Log.Warn("a container is not watched while it starts", "container", b.id, "error", err)
			}
		}
	}()
	if err := start.created(alive); err != nil {
		return nil, err
	}
	if _, err := d.docker.ContainerStart(ctx, b.id, client.ContainerStartOptions{}); err != nil {
		return nil, fmt.Errorf("starting the container: %w", dockererr.Of(err))
	}
	return start.started(alive, user)
}

// command is what the task runs; nil for a warm runner. As docker has it: arguments replace the image's Cmd, not its
// entry point; as Nomad has it: command is the first argument.
func command(spec *driver.Spec, c taskConfig, img images.Image) (*supervisor.TaskSpec, error) {
	var argv []string
	if c.command != "" {
		argv = append(argv, c.command)
	}
	argv = append(argv, c.args...)
	if spec.Pool && len(argv) == 0 && !c.hasEntry {
		return nil, nil // a warm runner has none
	}
	if len(argv) == 0 && !c.hasEntry {
		argv = img.Cmd
	}
	entry := img.Entrypoint
	if c.hasEntry {
		entry = c.entrypoint
	}
	argv = slices.Concat(entry, argv)
	if len(argv) == 0 {
		return nil, drover.Errorf(drover.Invalid, "command: nothing to run: give a command, or an image that has one")
	}
	// The agent interpolated paths of the machine; the container has the same folders elsewhere.
	replace := supervised.InsidePaths(spec.Dirs)
	for i := range argv {
		argv[i] = replace.Replace(argv[i])
	}
	user := users.Name(spec, img)
	if user == "" {
		user = "0"
	}
	if len(c.groups) > 0 {
		user = "" // the container's default user is this one, with those groups
	}
	return &supervisor.TaskSpec{
		Argv: argv, Env: environment(spec, c, img), WorkDir: workDir(c, img), User: user, TTY: c.tty, Input: c.input,
	}, nil
}
