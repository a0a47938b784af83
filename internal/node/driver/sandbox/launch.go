package sandbox

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"drover/internal/node/cgroup"
	"drover/internal/node/driver/supervised"
	"drover/internal/node/image"
	"drover/internal/node/supervisor"
	"drover/internal/node/supervisor/nsinit"
)

// launch starts drover-init in fresh namespaces and lets nsinit build the sandbox.
func (d *Driver) launch(ctx context.Context, b *box) (*supervisor.Client, error) {
	binary, err := os.Open(d.cfg.Binary)
	if err != nil {
		return nil, fmt.Errorf("opening the supervisor: %w", err)
	}
	defer binary.Close()
	ours, theirs, err := controlSocket()
	if err != nil {
		return nil, err
	}
	defer ours.Close()
	defer theirs.Close()
	logs, err := supervised.OpenLogs(b.spec.Log)
	if err != nil {
		return nil, err
	}
	if logs != nil {
		defer logs.Close()
	}
	attr, done, err := d.sysProcAttr(b)
	if err != nil {
		return nil, err
	}
	defer done()
	cfg := supervisor.LaunchConfig{
		// By descriptor: the agent's folder may be closed to the sandbox's ids.
		Binary:   "/proc/self/fd/" + strconv.Itoa(supervisor.FirstExtraFD),
		ID:       b.spec.ID,
		StateDir: b.spec.Dirs.State, LogDir: logs,
		Log:     supervisor.LogFiles{Task: b.spec.TaskName, MaxFiles: b.spec.Log.MaxFiles, MaxFileSize: b.spec.Log.MaxFileSize},
		User:    b.user,
		WorkDir: b.workDir(),
		Env:     b.env,
		Sandbox: []byte(strconv.Itoa(supervisor.FirstExtraFD + 1)), SysProcAttr: attr,
		ExtraFiles: []*os.File{binary, theirs}, Namespaces: d.namespaces(attr),
		Forked: func(pid int) error {
			_ = theirs.Close() // so that end of file comes when the sandbox closed its end
			return d.furnish(ctx, b, pid, ours)
		},
	}
	if b.config.network == networkGroup {
		cfg.NetNS = b.spec.NetNS.Path
	}
	return d.launchJoined(ctx, b, cfg)
}

// launchJoined launches from a thread that is in the supervisor's v1 groups, so that drover-init is born in them. The
// thread goes back as soon as it has forked; if it cannot, it ends with its goroutine.
func (d *Driver) launchJoined(ctx context.Context, b *box, cfg supervisor.LaunchConfig) (client *supervisor.Client, err error) {
	if b.group == nil || b.group.Version() != cgroup.V1 {
		return supervisor.Launch(ctx, cfg, b.options(d))
	}
	done := make(chan struct{})
	go func() { // ends with the launch
		defer close(done)
		runtime.LockOSThread()
		back, joinErr := b.group.JoinInit()
		b.joined = joinErr == nil
		home := sync.OnceFunc(func() {
			if !b.joined || back() == nil {
				runtime.UnlockOSThread()
			}
		})
		furnish := cfg.Forked
		cfg.Forked = func(pid int) error {
			home()
			return furnish(pid)
		}
		client, err = supervisor.Launch(ctx, cfg, b.options(d))
		home()
	}()
	<-done
	return client, err
}

// furnish does the agent's part while nsinit waits inside.
func (d *Driver) furnish(ctx context.Context, b *box, pid int, control *os.File) error {
	stop := context.AfterFunc(ctx, func() { _ = control.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	b.pid, b.startTicks = pid, processStart(pid)
	if b.group != nil && b.group.Version() == cgroup.V1 && !b.joined {
		if err := b.group.AddInit(pid); err != nil {
			return err
		}
	}
	m := &mounter{d: d}
	defer m.close()
	if !d.rootless {
		if err := writeMaps(pid, b.slot); err != nil {
			return err
		}
		userns, err := os.Open(fmt.Sprintf("/proc/%d/ns/user", pid))
		if err != nil {
			return fmt.Errorf("opening the user namespace: %w", err)
		}
		defer userns.Close()
		m.userns = userns
	}
	if err := d.connect(b); err != nil {
		return err
	}
	config, err := d.layout(b.spec, b.config, b.rootfs, m)
	if err != nil {
		return err
	}
	if err := nsinit.Send(control, config, m.fds); err != nil {
		return err
	}
	return nsinit.Result(control)
}

// namespaces are the clone flags for an agent with root, which can write the maps afterwards.
func (d *Driver) namespaces(attr *syscall.SysProcAttr) uintptr {
	if d.rootless {
		return 0
	}
	return attr.Cloneflags
}

// writeMaps gives the sandbox its range of ids.
func writeMaps(pid int, slot uint32) error {
	line := fmt.Appendf(nil, "0 %d %d\n", base(slot), idSize)
	for _, name := range []string{"uid_map", "gid_map"} {
		f, err := os.OpenFile(fmt.Sprintf("/proc/%d/%s", pid, name), os.O_WRONLY, 0)
		if err != nil {
			return fmt.Errorf("mapping ids: %w", err)
		}
		_, err = f.Write(line)
		if cerr := f.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			return fmt.Errorf("mapping ids: %w", err)
		}
	}
	return nil
}

func controlSocket() (ours, theirs *os.File, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("making the control socket: %w", err)
	}
	if err := unix.SetNonblock(pair[0], true); err != nil { // for deadlines
		return nil, nil, err
	}
	return os.NewFile(uintptr(pair[0]), "sandbox-control"), os.NewFile(uintptr(pair[1]), "sandbox-control"), nil
}

// sysProcAttr describes the namespaces. done releases what it holds.
func (d *Driver) sysProcAttr(b *box) (attr *syscall.SysProcAttr, done func(), err error) {
	flags := unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
	if ownNamespace(b.config.network) {
		flags |= unix.CLONE_NEWNET
	}
	attr = &syscall.SysProcAttr{
		Cloneflags: uintptr(flags), UidMappings: mappings(b.slot), GidMappings: mappings(b.slot),
		GidMappingsEnableSetgroups: true, Credential: &syscall.Credential{},
	}
	if d.rootless {
		attr.UidMappings, attr.GidMappings = selfMapping(os.Geteuid()), selfMapping(os.Getegid())
		attr.GidMappingsEnableSetgroups, attr.Credential.NoSetGroups = false, true
	}
	if b.group == nil || b.group.Version() != cgroup.V2 {
		if b.group != nil {
			// v2 paths would be shown relative to a root that hides nothing: see package cgroup.
			attr.Cloneflags |= unix.CLONE_NEWCGROUP
		}
		return attr, func() {}, nil
	}
	dir, err := os.Open(b.group.InitDir())
	if err != nil {
		return nil, nil, fmt.Errorf("opening the supervisor's cgroup: %w", err)
	}
	attr.UseCgroupFD, attr.CgroupFD = true, int(dir.Fd())
	return attr, func() { _ = dir.Close() }, nil
}

func lookupUser(rootfs *image.Rootfs, name string) (supervisor.User, error) {
	uid, gid, groups, err := rootfs.LookupUser(name)
	return supervisor.User{UID: uid, GID: gid, Groups: groups}, err
}
