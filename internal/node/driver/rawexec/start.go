package rawexec

import (
	"context"
	"errors"
	"os"
	"os/user"
	"strconv"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/grouped"
	"github.com/drover-project/drover/internal/node/driver/supervised"
	"github.com/drover-project/drover/internal/node/supervisor"
)

// Start starts a supervisor and, unless the task is a warm runner without a command, the task's program. Errors:
// *driver.StartError; nothing is left behind.
func (d *Driver) Start(ctx context.Context, spec driver.Spec) (driver.Handle, error) {
	h, err := d.start(ctx, spec)
	if err == nil {
		return h, nil
	}
	code := drover.CodeOf(err)
	fatal := code == drover.Invalid || code == drover.NotFound || code == drover.Forbidden
	return nil, &driver.StartError{Recoverable: !fatal, Err: err}
}

// start is Start with plain errors. On any of them the supervisor, the group and the folder are removed, also when ctx is over.
func (d *Driver) start(ctx context.Context, spec driver.Spec) (_ *handle, err error) {
	if !d.cfg.Enabled {
		return nil, drover.Errorf(drover.Forbidden, "the driver raw_exec is not enabled on this node")
	}
	c, err := parse(spec.Config)
	if err != nil {
		return nil, err
	}
	if c.command == "" && !spec.Pool {
		return nil, errNoCommand()
	}
	if len(spec.Mounts) > 0 {
		return nil, errNoMounts()
	}
	h := &handle{d: d, stateDir: spec.Dirs.State, warm: c.command == "", startedAt: d.cfg.Clock.Now()}
	var client *supervisor.Client
	defer func() {
		if err != nil {
			err = errors.Join(err, h.free(context.WithoutCancel(ctx), client))
		}
	}()
	if d.cfg.Cgroups != nil {
		h.groupName = groupName(spec.ID)
		limits := grouped.Limits(&spec, 0)
		limits.Pids = c.pids
		if h.group, err = d.cfg.Cgroups.Create(h.groupName, limits, 0); err != nil {
			return nil, err
		}
	}
	if client, err = d.launch(ctx, spec, h); err != nil {
		return nil, err
	}
	h.connected(client)
	h.ident = h.state(spec)
	if h.warm {
		return h, nil
	}
	return h, h.StartMain(ctx, supervisor.TaskSpec{
		Argv: append([]string{c.command}, c.args...), Env: spec.Env, WorkDir: spec.Dirs.Task, User: spec.User,
	}, h.groups())
}

// launch gets a supervisor: an idle one of the pool if there is one, else a new one. One in a group's network namespace is always new.
func (d *Driver) launch(ctx context.Context, spec driver.Spec, h *handle) (*supervisor.Client, error) {
	who, err := lookupUser(spec.User)
	if err != nil {
		return nil, err
	}
	cfg := supervisor.LaunchConfig{
		Binary: d.cfg.Binary, ID: spec.ID, StateDir: spec.Dirs.State, WorkDir: spec.Dirs.Task, Env: spec.Env, User: who,
	}
	if cfg.LogDir, err = supervised.OpenLogs(spec.Log); err != nil {
		return nil, err
	}
	if cfg.LogDir != nil {
		defer cfg.LogDir.Close()
		cfg.Log = supervisor.LogFiles{Task: spec.TaskName, MaxFiles: spec.Log.MaxFiles, MaxFileSize: spec.Log.MaxFileSize}
	}
	if spec.NetNS != nil {
		cfg.NetNS, h.joined = spec.NetNS.Path, true
	} else if d.pool != nil {
		// A kept supervisor is in the agent's network namespace, so it can only serve tasks of that.
		if client := d.pool.Take(ctx, cfg, h.options()); client != nil {
			return client, nil
		}
	}
	if h.group == nil {
		return supervisor.Launch(ctx, cfg, h.options())
	}
	return grouped.Launch(ctx, d.cfg.Cgroups.Supervisors(), cfg, h.options())
}

// WalksAs is the user that the task's programs come to its folders as.
func (d *Driver) WalksAs(task *drover.Task) (uint32, error) {
	who, err := lookupUser(task.User)
	return who.UID, err
}

// lookupUser resolves the user that executions run as by default: the task's, or the agent's own.
func lookupUser(name string) (supervisor.User, error) {
	self := supervisor.User{UID: uint32(os.Getuid()), GID: uint32(os.Getgid())}
	if name == "" {
		return self, nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		uid, gid, _ := strings.Cut(name, ":")
		if u, err = user.LookupId(uid); err != nil {
			// A number that no account has is a user all the same, with the group of that number.
			u = &user.User{Uid: uid, Gid: uid}
		}
		if gid != "" {
			u.Gid = gid
		}
	}
	uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	if err1 != nil || err2 != nil {
		return self, drover.Errorf(drover.Invalid, "unknown user %q", name)
	}
	return supervisor.User{UID: uint32(uid), GID: uint32(gid), Groups: []uint32{uint32(gid)}}, nil
}
