package sandbox

import (
	"context"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/internal/node/cgroup"
	"github.com/drover-project/drover/internal/node/driver/supervised"
	"github.com/drover-project/drover/internal/node/image"
	"github.com/drover-project/drover/internal/node/supervisor"
	"github.com/drover-project/drover/internal/node/supervisor/sandboxsetup"
	"github.com/drover-project/drover/internal/node/supervisor/spawn"
)

// launch starts drover-init in fresh namespaces that the script furnishes.
func (d *Driver) launch(ctx context.Context, b *box) (*supervisor.Client, error) {
	logs, err := supervised.OpenLogs(b.spec.Log)
	if err != nil {
		return nil, err
	}
	if logs != nil {
		defer logs.Close()
	}
	caps, err := d.capsOf(b.spec, b.config)
	if err != nil {
		return nil, err
	}
	m := &mounter{d: d}
	defer m.close()
	stage, err := d.stage(b)
	if err != nil {
		return nil, err
	}
	if stage.Cgroup != nil {
		defer stage.Cgroup.Close()
	}
	stage.Script = func(child *spawn.Staged, env []string) (*spawn.Script, []int, error) {
		return d.furnish(b, m, stage, child, env)
	}
	cfg := supervisor.LaunchConfig{
		Binary: d.cfg.Binary, ID: b.spec.ID, StateDir: b.spec.Dirs.State, Shelf: d.shelf, LogDir: logs,
		Log:             supervisor.LogFiles{Task: b.spec.TaskName, MaxFiles: b.spec.Log.MaxFiles, MaxFileSize: b.spec.Log.MaxFileSize},
		User:            b.user,
		WorkDir:         b.workDir(),
		Env:             b.env,
		Stage:           stage,
		CgroupNamespace: true, Drop: supervisorCaps &^ caps,
	}
	if b.config.task != nil && b.config.task.Ambient && !b.spec.Pool { // who asks for a runner knows nothing of its code
		cfg.Ambient = caps
	}
	if b.config.network == networkGroup {
		cfg.NetNS = b.spec.NetNS.Path
	}
	client, err := supervisor.Launch(ctx, cfg, b.options(d))
	if err != nil {
		return nil, sandboxsetup.Explain(err)
	}
	b.pid, b.startTicks, b.child = client.Pid(), client.StartTicks(), client.Child()
	return client, nil
}

// furnish does the agent's part while the child waits in its namespaces: it writes the maps, and the script.
func (d *Driver) furnish(
	b *box, m *mounter, stage *supervisor.Stage, child *spawn.Staged, env []string,
) (*spawn.Script, []int, error) {
	b.pid = child.Pid
	if err := d.writeMaps(child.Pid, b.slot); err != nil {
		return nil, nil, err
	}
	if !d.rootless {
		userns, err := openNamespace(child, "user", unix.PIDFD_GET_USER_NAMESPACE)
		if err != nil {
			return nil, nil, err
		}
		defer userns.Close()
		m.userns = userns
	}
	if err := d.connect(b); err != nil {
		return nil, nil, err
	}
	config, err := d.layout(b.spec, b.config, b.rootfs, m)
	if err != nil {
		return nil, nil, err
	}
	if err := joinGroups(config, m, b.group); err != nil {
		return nil, nil, err
	}
	if stage.Bare {
		if err := addProc(config, m, child); err != nil {
			return nil, nil, err
		}
	}
	if d.outer {
		if err := outerRoot(config, m, base(b.slot)); err != nil {
			return nil, nil, err
		}
	}
	script, err := sandboxsetup.Script(config, len(m.fds), env)
	return script, m.fds, err
}

// joinGroups lets the child go into its v1 groups by itself: to move somebody else stops all forks of the machine, for
// milliseconds.
func joinGroups(c *sandboxsetup.Config, m *mounter, group *cgroup.Group) error {
	if group == nil || group.Version() != cgroup.V1 {
		return nil
	}
	fds, err := group.OpenInit()
	for _, fd := range fds {
		c.Join = append(c.Join, m.add(fd))
	}
	return err
}

// writeMaps gives the sandbox its range of ids; without root, the agent's own as its root's.
func (d *Driver) writeMaps(pid int, slot uint32) error {
	users := fmt.Appendf(nil, "0 %d %d\n", base(slot), idSize)
	groups := users
	if d.rootless {
		users, groups = fmt.Appendf(nil, "0 %d 1\n", os.Geteuid()), fmt.Appendf(nil, "0 %d 1\n", os.Getegid())
		// Without privileges, gid_map may be written only after setgroups was denied.
		if err := writeMap(pid, "setgroups", []byte("deny")); err != nil {
			return err
		}
	}
	if err := writeMap(pid, "uid_map", users); err != nil {
		return err
	}
	return writeMap(pid, "gid_map", groups)
}

// writeMap writes the file in one call, as the kernel demands for id maps (user_namespaces(7)).
func writeMap(pid int, name string, line []byte) error {
	fd, err := unix.Open(fmt.Sprintf("/proc/%d/%s", pid, name), unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("mapping ids: %w", err)
	}
	defer unix.Close(fd)
	if _, err = unix.Write(fd, line); err != nil {
		return fmt.Errorf("mapping ids: writing %s: %w", name, err)
	}
	return nil
}

// stage lists the namespaces. The caller closes its cgroup's folder.
func (d *Driver) stage(b *box) (*supervisor.Stage, error) {
	s := &supervisor.Stage{
		Hidden:     b.group != nil,
		Namespaces: unix.CLONE_NEWUSER | unix.CLONE_NEWPID,
		Unshare:    unix.CLONE_NEWNS | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS,
		Bare:       b.config.network != networkGroup && d.bare(),
	}
	if t := b.config.task; t != nil && t.HostIPC {
		s.Unshare &^= unix.CLONE_NEWIPC
	}
	switch {
	case !ownNamespace(b.config.network):
	case b.config.network == networkBridge: // which is connected before the child goes on
		s.Namespaces |= unix.CLONE_NEWNET
	default:
		s.Unshare |= unix.CLONE_NEWNET
	}
	if b.group == nil || b.group.Version() != cgroup.V2 {
		return s, nil
	}
	var err error
	if s.Cgroup, err = os.Open(b.group.InitDir()); err != nil {
		return nil, fmt.Errorf("opening the supervisor's cgroup: %w", err)
	}
	return s, nil
}

// lookupUser resolves a user in the image's files. Errors: Invalid for one that is not there.
func lookupUser(rootfs *image.Rootfs, name string) (supervisor.User, error) {
	uid, gid, groups, err := rootfs.LookupUser(name)
	return supervisor.User{UID: uid, GID: gid, Groups: groups}, err
}
