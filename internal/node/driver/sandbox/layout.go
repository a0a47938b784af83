package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/supervised"
	"github.com/drover-project/drover/internal/node/egress"
	"github.com/drover-project/drover/internal/node/image"
	"github.com/drover-project/drover/internal/node/supervisor/sandboxsetup"
)

// layout describes the sandbox's inside. Mounts are collected in m.
func (d *Driver) layout(spec *driver.Spec, c taskConfig, rootfs *image.Rootfs, m *mounter) (*sandboxsetup.Config, error) {
	caps, err := d.capsOf(spec, c)
	if err != nil {
		return nil, err
	}
	program, err := d.seccomp.program(filter{clone3: d.cloneIntoGroups(), plainModes: writesOutside(spec, c)})
	if err != nil {
		return nil, err
	}
	diskMB := d.diskMB(spec, c)
	config := &sandboxsetup.Config{
		// 256 inodes for each MB are as many as there is room for files of one page, 4 kB.
		Hostname: hostname(spec, c), SizeMB: diskMB, Inodes: max(diskMB*256, 16384), ReadOnly: c.readOnly,
		Loopback: ownNamespace(c.network), NoUserNamespaces: true, KeepCaps: caps | supervisorCaps, Seccomp: program,
		Rlimits: d.rlimits(spec, c), OneUser: d.rootless,
		Scratch: []sandboxsetup.Scratch{{Target: "/tmp", Mode: 0o1777}},
	}
	if !d.writableRoot(c) {
		config.Scratch = append(config.Scratch, sandboxsetup.Scratch{Target: "/var/tmp", Mode: 0o1777})
	}
	if err := addImage(config, m, rootfs); err != nil {
		return nil, err
	}
	if err := d.addDevices(config, m, spec.Devices.Nodes); err != nil {
		return nil, err
	}
	if err := d.coverProc(config, m, spec); err != nil {
		return nil, err
	}
	d.addHome(config, rootfs, c)
	if err := d.addLogs(config, m, spec); err != nil {
		return nil, err
	}
	if err := d.addAllocation(config, m, spec, c); err != nil {
		return nil, err
	}
	if c.task != nil && !spec.Pool {
		if err := addTaskFolder(config, m, spec, rootfs); err != nil {
			return nil, err
		}
	}
	if c.network != networkNone {
		if err := addResolver(config, m, spec, c); err != nil {
			return nil, err
		}
	}
	if rootfs.Ref != image.Host && rootfs.Ref != image.Chroot { // which have the machine's
		for _, l := range spec.Devices.Libraries {
			if err := addMount(config, m, tree{path: l.Source, readOnly: true}, l.Target); err != nil {
				return nil, err
			}
		}
	}
	return config, d.addMounts(config, m, spec, c)
}

// addImage mounts the image: its layers, and over them what it shows of the machine.
func addImage(c *sandboxsetup.Config, m *mounter, rootfs *image.Rootfs) error {
	for _, l := range rootfs.Lowers {
		src, err := m.source(tree{path: l, readOnly: true, image: true})
		if err != nil {
			return err
		}
		c.Lowers = append(c.Lowers, src)
	}
	for _, b := range rootfs.Binds {
		src, err := m.source(tree{path: b.Source, readOnly: true, recursive: true, foreign: true})
		if err != nil {
			return err
		}
		c.Binds = append(c.Binds, sandboxsetup.Bind{Source: src, Target: b.Target, File: b.File})
	}
	return nil
}

// addResolver shows the machine's name service configuration to a sandbox that can reach it, or that which its group has.
func addResolver(c *sandboxsetup.Config, m *mounter, spec *driver.Spec, config taskConfig) error {
	own, err := supervised.Resolver(spec)
	if err == nil && own == "" && config.dns != nil {
		own, err = supervised.WriteResolver(spec, *config.dns)
	}
	if err != nil {
		return err
	}
	for _, name := range []string{"/etc/resolv.conf", "/etc/hosts"} {
		from := name
		if config.network != networkHost {
			if name == "/etc/hosts" {
				continue // its names may be the machine's own services
			}
			from = egress.ResolverFile()
		}
		if own != "" && name == "/etc/resolv.conf" {
			from = own
		}
		path, err := filepath.EvalSymlinks(from)
		if err != nil {
			continue // the machine has none
		}
		if err := addMount(c, m, tree{path: path, readOnly: true}, name); err != nil {
			return err
		}
	}
	return nil
}

// writesOutside reports whether the sandbox may write to the machine's file systems.
func writesOutside(spec *driver.Spec, c taskConfig) bool {
	return !spec.Pool || writableMounts(spec, c)
}

// writableMounts reports whether a volume or a mount of the task can be written to.
func writableMounts(spec *driver.Spec, c taskConfig) bool {
	return slices.ContainsFunc(spec.Mounts, func(m driver.Mount) bool { return !m.ReadOnly }) ||
		slices.ContainsFunc(c.mounts, func(m mountConfig) bool { return !m.readOnly })
}

// diskMB is the size of all that the guest may write. It lies in memory, so by default it may take half of that: a
// program that fills the disk is then told so, instead of being killed for memory.
func (d *Driver) diskMB(spec *driver.Spec, c taskConfig) int64 {
	if c.diskMB > 0 {
		return c.diskMB
	}
	size := spec.DiskMB
	if size <= 0 {
		size = defaultDiskMB
	}
	if memory := max(spec.MemoryMB, spec.MemoryMaxMB); memory > 0 {
		size = min(size, max(memory/2, 16))
	}
	return size
}

// addHome gives the host image's user a home where it cannot have the image's.
func (d *Driver) addHome(c *sandboxsetup.Config, rootfs *image.Rootfs, task taskConfig) {
	if rootfs.Ref != image.Host || d.writableRoot(task) {
		return
	}
	home := sandboxsetup.Scratch{Target: "/home/" + image.HostUser, Mode: 0o755, UID: 1000}
	if d.rootless {
		home.UID = 0 // the only one that there is
	}
	c.Scratch = append(c.Scratch, home, sandboxsetup.Scratch{Target: "/root", Mode: 0o700})
}

// writableRoot reports whether everything in the root can be changed by whom it belongs to: then a directory on it
// does as well as a mount.
func (d *Driver) writableRoot(c taskConfig) bool {
	return !c.readOnly && !d.rootless && !d.plainMounts.Load()
}

// addLogs lets the supervisor, which is not the machine's root, write into the agent's log folder.
func (d *Driver) addLogs(c *sandboxsetup.Config, m *mounter, spec *driver.Spec) error {
	if d.rootless || spec.Log.Disabled || spec.Log.Dir == "" {
		return nil
	}
	src, err := m.source(tree{path: spec.Log.Dir})
	if err != nil {
		return err
	}
	c.Logs = &src
	return nil
}

// addAllocation mounts the allocation's folders. A warm runner's lie on its own size-limited file system, so that all
// that an unknown guest can write is bounded; what the agent put there before is shown read-only.
func (d *Driver) addAllocation(c *sandboxsetup.Config, m *mounter, spec *driver.Spec, task taskConfig) error {
	for _, f := range []struct{ source, target string }{
		{spec.Dirs.Shared, supervised.AllocPath}, {spec.Dirs.Local, supervised.LocalPath}, {spec.Dirs.Secrets, supervised.SecretsPath},
	} {
		if f.source == "" || (spec.Pool && (f.target == supervised.AllocPath || supervised.EmptyDir(f.source))) {
			if !d.writableRoot(task) { // else the image has these directories
				c.Scratch = append(c.Scratch, sandboxsetup.Scratch{Target: f.target, Mode: 0o777})
			}
			continue
		}
		src, err := m.source(tree{path: f.source, readOnly: spec.Pool})
		if err != nil {
			return err
		}
		c.Binds = append(c.Binds, sandboxsetup.Bind{Source: src, Target: f.target, Late: true})
	}
	return nil
}

// addMounts adds volumes (the agent's) and mounts of the task's configuration.
func (d *Driver) addMounts(c *sandboxsetup.Config, m *mounter, spec *driver.Spec, task taskConfig) error {
	for _, v := range spec.Mounts {
		if err := addMount(c, m, tree{path: v.Source, readOnly: v.ReadOnly}, v.Target); err != nil {
			return err
		}
	}
	for _, v := range task.mounts {
		path := v.source
		if !strings.HasPrefix(path, "/") {
			if !filepath.IsLocal(path) {
				return drover.Errorf(drover.Invalid, "mounts: source %q leads out of the task's folder", v.source)
			}
			path = filepath.Join(spec.Dirs.Task, path)
			if err := noLinks(spec.Dirs.Task, v.source); err != nil {
				return drover.Errorf(drover.Invalid, "mounts: source %q: %w", v.source, err)
			}
		}
		if err := addMount(c, m, tree{path: path, readOnly: v.readOnly}, v.target); err != nil {
			return err
		}
	}
	return nil
}

// addMount binds the tree over the finished root, where it hides what the image has at the target. Errors: Invalid if there is nothing at
// the path.
func addMount(c *sandboxsetup.Config, m *mounter, t tree, target string) error {
	info, err := os.Lstat(t.path)
	if err != nil {
		return drover.Errorf(drover.Invalid, "mounting at %s: %w", target, err)
	}
	src, err := m.source(t)
	if err != nil {
		return err
	}
	c.Binds = append(c.Binds, sandboxsetup.Bind{Source: src, Target: target, File: !info.IsDir(), Late: true})
	return nil
}

// noLinks refuses a path with a link in it: what lies in the task's folder may be a guest's.
func noLinks(dir, rel string) error {
	at, err := unix.Open(dir, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(at)
	fd, err := unix.Openat2(at, rel, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS,
	})
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

// hostname is the task's, else its group's, else the task's name with the start of its allocation's id.
func hostname(spec *driver.Spec, c taskConfig) string {
	if c.hostname != "" {
		return c.hostname
	}
	if len(spec.Networks) > 0 && spec.Networks[0].Hostname != "" {
		return spec.Networks[0].Hostname
	}
	if len(spec.AllocID) >= 8 {
		return spec.TaskName + "-" + spec.AllocID[:8]
	}
	return "runner"
}

// rlimits that hold for everything in the sandbox. Without cgroups they are all that there is.
func (d *Driver) rlimits(spec *driver.Spec, c taskConfig) []sandboxsetup.Rlimit {
	var files unix.Rlimit
	_ = unix.Getrlimit(unix.RLIMIT_NOFILE, &files)
	hard := min(files.Max, 1<<20)
	limits := []sandboxsetup.Rlimit{
		{Resource: unix.RLIMIT_CORE},
		{Resource: unix.RLIMIT_NOFILE, Soft: min(1024, hard), Hard: hard},
		{Resource: unix.RLIMIT_MEMLOCK, Soft: 64 << 10, Hard: 64 << 10},
		{Resource: unix.RLIMIT_MSGQUEUE, Soft: 819200, Hard: 819200},
	}
	if size := largestFile(spec, c); size > 0 {
		limits = append(limits, sandboxsetup.Rlimit{Resource: unix.RLIMIT_FSIZE, Soft: size, Hard: size})
	}
	if !d.controls("pids") {
		limits = append(limits, sandboxsetup.Rlimit{Resource: unix.RLIMIT_NPROC, Soft: uint64(c.pids), Hard: uint64(c.pids)})
	}
	if memory := max(spec.MemoryMB, spec.MemoryMaxMB); memory > 0 && !d.controls("memory") {
		bytes := uint64(max(memory, 64)) << 20
		limits = append(limits, sandboxsetup.Rlimit{Resource: unix.RLIMIT_DATA, Soft: bytes, Hard: bytes})
	}
	return limits
}

// largestFile is the size that no file of a task can exceed without exceeding its disk's limit. 0 is no bound, since what a task mounts
// from elsewhere has its own. The bound holds for the supervisor too, which writes the logs.
func largestFile(spec *driver.Spec, c taskConfig) uint64 {
	if spec.Pool || spec.DiskMB <= 0 || writableMounts(spec, c) {
		return 0
	}
	return uint64(max(spec.DiskMB<<20, 2*spec.Log.MaxFileSize)) // positive
}
