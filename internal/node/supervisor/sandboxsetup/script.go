package sandboxsetup

import (
	"errors"
	"path"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/internal/node/supervisor/spawn"
)

// builder writes one script. Paths in it are those that the child sees at that point.
type builder struct {
	*spawn.Script
	c       *Config
	layers  []spawn.Slot
	binds   []spawn.Slot
	scratch []spawn.Slot
	masks   []spawn.Slot
}

// Script returns the calls for a child with that many descriptors, which Config names. env is drover-init's.
func Script(c *Config, descriptors int, env []string) (*spawn.Script, error) {
	if len(c.Lowers) == 0 && c.Outer == nil {
		return nil, errors.New("the sandbox has no root")
	}
	b := &builder{Script: spawn.NewScript(descriptors), c: c}
	for _, fd := range c.Join {
		b.Call("joining a control group", unix.SYS_WRITE, spawn.Slot(fd).Arg(), b.Bytes([]byte("0")), spawn.Num(1))
	}
	b.becomeRoot()
	if c.Proc == nil {
		b.Call("making mounts private", unix.SYS_MOUNT, spawn.Arg{}, b.Str("/"), spawn.Arg{}, spawn.Num(unix.MS_REC|unix.MS_PRIVATE), spawn.Arg{})
	}
	if err := b.resolve(descriptors); err != nil {
		return nil, err
	}
	b.buildRoot()
	b.enterRoot()
	b.attach()
	b.knobs()
	b.cover()
	if c.ReadOnly {
		b.setReadOnly("/", spawn.Num(atCwd), b.Str("/"), 0)
	}
	b.seal()
	return b.Script, errors.Join(b.execute(env), b.Err())
}

// atCwd is AT_FDCWD as a register has it.
const atCwd = ^uintptr(99)

// becomeRoot takes the namespace's user 0, once the agent has mapped it.
func (b *builder) becomeRoot() {
	if b.c.OneUser {
		return // it is that already, and may not change its groups
	}
	b.Call("dropping groups", unix.SYS_SETGROUPS, spawn.Num(0), spawn.Num(0))
	b.Call("becoming the sandbox's root group", unix.SYS_SETRESGID, spawn.Num(0), spawn.Num(0), spawn.Num(0))
	b.Call("becoming the sandbox's root", unix.SYS_SETRESUID, spawn.Num(0), spawn.Num(0), spawn.Num(0))
}

// resolve turns layers, binds and the log folder into detached mounts, while the host's paths can be seen.
func (b *builder) resolve(descriptors int) error {
	for _, l := range b.c.Lowers {
		slot, err := b.open(l, "opening a layer", descriptors)
		if err != nil {
			return err
		}
		b.layers = append(b.layers, slot)
	}
	for _, m := range b.c.Binds {
		slot, err := b.open(m.Source, "opening the source of "+m.Target, descriptors)
		if err != nil {
			return err
		}
		b.binds = append(b.binds, slot)
	}
	if b.c.Logs == nil {
		return nil
	}
	const what = "opening the log folder"
	tree, err := b.open(*b.c.Logs, what, descriptors)
	if err != nil {
		return err
	}
	dir := b.Call(what, unix.SYS_OPENAT, tree.Arg(), b.Str("."), spawn.Num(unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC), spawn.Num(0)).
		Result()
	b.Call(what, unix.SYS_DUP3, dir.Arg(), spawn.Num(logFD), spawn.Num(0))
	return nil
}

// logFD is where the supervisor expects its log folder.
const logFD = 5

// open returns the detached mount of a source.
func (b *builder) open(s Source, what string, descriptors int) (spawn.Slot, error) {
	if s.FD >= descriptors {
		return 0, errors.New(what + ": its descriptor is missing")
	}
	if s.FD >= 0 {
		return spawn.Slot(s.FD), nil
	}
	return b.cloneMount(what, s.Path, s.ReadOnly), nil
}

// cloneMount makes a detached mount of a directory.
func (b *builder) cloneMount(what, dir string, readOnly bool) spawn.Slot {
	fd := b.Call(what, unix.SYS_OPEN_TREE, spawn.Num(atCwd), b.Str(dir), spawn.Num(unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)).Result()
	if readOnly {
		b.setReadOnly(what, fd.Arg(), b.Str(""), unix.AT_EMPTY_PATH)
	}
	return fd
}

// setReadOnly makes one mount read-only, by its path or, with AT_EMPTY_PATH, by its descriptor.
func (b *builder) setReadOnly(what string, dir, path spawn.Arg, flags int) {
	attr := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	b.Call(
		"making it read-only: "+what,
		unix.SYS_MOUNT_SETATTR,
		dir,
		path,
		spawn.Num(flags),
		spawn.Pointer(b.Script, attr),
		spawn.Num(unsafe.Sizeof(*attr)),
	)
}

// moveMount attaches a detached mount.
func (b *builder) moveMount(what string, fd spawn.Slot, target string) *spawn.Call {
	return b.Call(what, unix.SYS_MOVE_MOUNT, fd.Arg(), b.Str(""), spawn.Num(atCwd), b.Str(target),
		spawn.Num(unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_SYMLINKS))
}

// mount adds a call of mount(2); without options it gets a null pointer for them.
func (b *builder) mount(what, source, target, kind string, flags int, options string) *spawn.Call {
	data := spawn.Arg{}
	if options != "" {
		data = b.Str(options)
	}
	return b.Call(what, unix.SYS_MOUNT, b.Str(source), b.Str(target), b.Str(kind), spawn.Num(flags), data)
}

func (b *builder) mkdir(what, dir string, mode uint32) *spawn.Call {
	return b.Call(what, unix.SYS_MKDIRAT, spawn.Num(atCwd), b.Str(dir), spawn.Num(mode))
}

func (b *builder) chdir(what, dir string) {
	b.Call(what, unix.SYS_CHDIR, b.Str(dir))
}

func (b *builder) close(fd spawn.Slot) { b.Call("closing a descriptor", unix.SYS_CLOSE, fd.Arg()) }

// place attaches a detached mount, making the target if it is missing. It does not cover what is not of its kind.
func (b *builder) place(fd spawn.Slot, target string, file bool) {
	target = path.Clean("/" + target)
	what := "mounting " + target
	first := b.moveMount(what, fd, target).Forgive(unix.ENOENT)
	b.makeTarget(what, target, file)
	b.moveMount(what, fd, target)
	first.ElseSkip()
}

// makeTarget makes a directory or file with all above it. What is there stays.
func (b *builder) makeTarget(what, target string, file bool) {
	parts := strings.Split(strings.Trim(target, "/"), "/")
	for i := range parts {
		at := "/" + path.Join(parts[:i+1]...)
		if file && i == len(parts)-1 {
			fd := b.Call(what, unix.SYS_OPENAT, spawn.Num(atCwd), b.Str(at), spawn.Num(unix.O_CREAT|unix.O_RDONLY|unix.O_CLOEXEC), spawn.Num(0o644)).
				Result()
			b.close(fd)
			continue
		}
		b.mkdir(what, at, 0o755).Forgive(unix.EEXIST)
	}
}
