package rawexec

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/grouped"
	"github.com/drover-project/drover/internal/node/driver/options"
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
	spec.Env = without(spec.Env, slices.Concat(d.cfg.DeniedEnv, c.denied))
	h := &handle{d: d, stateDir: spec.Dirs.State, warm: c.command == "", elsewhere: len(c.groups) > 0, startedAt: d.cfg.Clock.Now()}
	var client *supervisor.Client
	defer func() {
		if err != nil {
			err = errors.Join(err, h.free(context.WithoutCancel(ctx), client))
		}
	}()
	if d.cfg.Cgroups != nil && !h.elsewhere {
		h.groupName = groupName(spec.ID)
		limits := grouped.Limits(&spec, 0)
		limits.Pids = c.pids
		if h.group, err = d.cfg.Cgroups.Create(h.groupName, limits, 0); err != nil {
			return nil, err
		}
	}
	if client, err = d.launch(ctx, spec, h, &c); err != nil {
		return nil, err
	}
	h.connected(client)
	h.ident = h.state(spec)
	if h.warm {
		return h, nil
	}
	err = h.StartMain(ctx, supervisor.TaskSpec{
		Argv: append([]string{c.command}, c.args...), Env: spec.Env, WorkDir: cmp.Or(c.workDir, spec.Dirs.Task), User: spec.User,
	}, h.groups())
	if err == nil && c.oom != 0 {
		err = h.setOOMScore(c.oom)
	}
	return h, err
}

// without leaves out the variables that a pattern names: * at either end of it stands for any characters.
func without(env map[string]string, patterns []string) map[string]string {
	if len(patterns) == 0 {
		return env
	}
	kept := maps.Clone(env)
	maps.DeleteFunc(kept, func(name, _ string) bool {
		return slices.ContainsFunc(patterns, func(p string) bool { return fits(p, name) })
	})
	return kept
}

func fits(pattern, name string) bool {
	inner := strings.TrimPrefix(strings.TrimSuffix(pattern, "*"), "*")
	front, back := strings.HasPrefix(pattern, "*"), strings.HasSuffix(pattern, "*")
	switch {
	case front && back:
		return strings.Contains(name, inner)
	case front:
		return strings.HasSuffix(name, inner)
	case back:
		return strings.HasPrefix(name, inner)
	}
	return name == pattern
}

// setOOMScore says how soon the kernel ends the task's processes when memory is short. Those that a program has started by now are
// found; later ones have it from their parents.
func (h *handle) setOOMScore(score int64) error {
	pids := tree(h.Last().Pid())
	for _, pid := range pids {
		err := os.WriteFile(filepath.Join("/proc", strconv.Itoa(pid), "oom_score_adj"), strconv.AppendInt(nil, score, 10), 0)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("oom_score_adj: %w", err)
		}
	}
	return nil
}

// joinOverrides puts a supervisor, which has started nothing yet, into the machine's own groups.
func joinOverrides(groups []string, pid int) error {
	for _, dir := range groups {
		f, err := os.OpenFile(filepath.Join(dir, "cgroup.procs"), os.O_WRONLY, 0)
		if err != nil {
			return drover.Errorf(drover.Invalid, "joining the control group %s: %w", dir, err)
		}
		_, err = f.WriteString(strconv.Itoa(pid))
		if err = errors.Join(err, f.Close()); err != nil {
			return drover.Errorf(drover.Invalid, "joining the control group %s: %w", dir, err)
		}
	}
	return nil
}

// launch gets a supervisor: an idle one of the pool if there is one, else a new one. One in a group's network namespace is always new.
func (d *Driver) launch(ctx context.Context, spec driver.Spec, h *handle, c *taskConfig) (*supervisor.Client, error) {
	who, err := d.lookupUser(spec.User)
	if err != nil {
		return nil, err
	}
	cfg := supervisor.LaunchConfig{
		Binary: d.cfg.Binary, ID: spec.ID, StateDir: spec.Dirs.State, WorkDir: cmp.Or(c.workDir, spec.Dirs.Task), Env: spec.Env, User: who,
	}
	if h.elsewhere {
		cfg.Forked = func(pid int) error { return joinOverrides(c.groups, pid) }
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
	} else if d.pool != nil && !h.elsewhere {
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
	who, err := d.lookupUser(task.User)
	return who.UID, err
}

// lookupUser is userOf for a user that this node permits. Errors: Invalid, Forbidden.
func (d *Driver) lookupUser(name string) (supervisor.User, error) {
	who, err := userOf(name)
	if err != nil || len(d.cfg.DeniedUIDs) == 0 && len(d.cfg.DeniedGIDs) == 0 {
		return who, err
	}
	groups := append(slices.Clone(who.Groups), who.GID)
	if u, err := user.LookupId(strconv.FormatUint(uint64(who.UID), 10)); err == nil {
		ids, err := u.GroupIds()
		if err != nil {
			return who, fmt.Errorf("user: looking up the groups of %q: %w", name, err)
		}
		for _, text := range ids {
			if id, err := strconv.ParseUint(text, 10, 32); err == nil {
				groups = append(groups, uint32(id)) // parsed as 32 bits
			}
		}
	}
	return who, options.Permitted(name, who.UID, groups, d.cfg.DeniedUIDs, d.cfg.DeniedGIDs)
}

// userOf resolves the user that executions run as by default: the task's, or the agent's own.
func userOf(name string) (supervisor.User, error) {
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
