package sandboxsetup

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/internal/node/supervisor/spawn"
)

// stage is where the new root is put together: a directory that every machine has. Only this mount namespace sees it.
const stage = spawn.EmptyRoot

const mountingProc = "mounting /proc"

// buildRoot mounts the size-limited file system, the layers and /proc, and makes detached mounts of the scratch
// directories and of an empty one.
func (b *builder) buildRoot() {
	const writable = "mounting the writable layer"
	if o := b.c.Outer; o != nil {
		b.moveMount(writable, spawn.Slot(o.Writable), stage)
		b.chdir(writable, stage)
		b.moveMount("mounting the overlay", spawn.Slot(o.Root), "root")
	} else {
		b.mount(writable, "drover", stage, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, b.c.WritableOptions())
		b.chdir(writable, stage)
		for _, d := range []string{"root", "up", "work", "empty"} {
			b.mkdir("making "+d, d, 0o755)
		}
		b.mountOverlay()
	}
	for i, s := range b.c.Scratch {
		b.makeScratch(fmt.Sprintf("s%d", i), s)
	}
	b.makeMasks()
	if p := b.c.Proc; p != nil {
		b.moveMount(mountingProc, spawn.Slot(*p), "root/proc")
		return
	}
	// A new /proc may be mounted only while the old one can be seen.
	b.mount(mountingProc, "proc", "root/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
}

// makeMasks makes detached mounts of the empty directory, of which the first is attached: kernels before 6.15 do not
// clone a detached mount.
func (b *builder) makeMasks() {
	const what, empty = "cloning the empty directory", "empty"
	b.moveMount(what, b.cloneMount(what, empty, true), empty)
	for range b.c.MaskDirs {
		b.masks = append(b.masks, b.cloneMount(what, empty, false))
	}
}

// mountOverlay attaches the layers below the stage and mounts the overlay over them. With userxattr it works in a user namespace.
func (b *builder) mountOverlay() {
	options := "userxattr,upperdir=up,workdir=work,lowerdir="
	for i, l := range b.layers {
		name := fmt.Sprintf("l%d", i)
		what := fmt.Sprintf("attaching layer %d", i)
		b.mkdir(what, name, 0o755)
		b.moveMount(what, l, name)
		if i > 0 {
			options += ":"
		}
		options += name
	}
	b.mount(
		fmt.Sprintf("mounting the overlay of %d layers", len(b.layers)),
		"overlay",
		"root",
		"overlay",
		unix.MS_NOSUID|unix.MS_NODEV,
		options,
	)
}

// makeScratch makes a directory on the writable layer, and a mount of it that attach puts in its place. Its mode is set apart, past the
// umask.
func (b *builder) makeScratch(name string, s Scratch) {
	what := "making " + s.Target
	b.mkdir(what, name, 0o700)
	b.Call(what, unix.SYS_FCHMODAT, spawn.Num(atCwd), b.Str(name), spawn.Num(s.Mode))
	if s.UID != 0 {
		b.Call("giving "+s.Target+" away", unix.SYS_FCHOWNAT, spawn.Num(atCwd), b.Str(name), spawn.Num(s.UID), spawn.Num(s.UID), spawn.Num(0))
	}
	b.scratch = append(b.scratch, b.cloneMount(what, name, false))
}

// enterRoot makes stage/root the root and lets go of everything outside. In a bare namespace there is nothing to let go of: what is below
// the new root is an empty directory, and the stage, whose files are the sandbox's own. No path and no setns leads below a root. pivot_root
// looks at every thread of the machine, and the kernel waits for all processors before it lets go of a mount.
func (b *builder) enterRoot() {
	const what = "changing the root"
	b.chdir(what, "root")
	if b.c.Proc != nil {
		b.mount(what, ".", "/", "", unix.MS_MOVE, "")
		b.Call(what, unix.SYS_CHROOT, b.Str("."))
		return
	}
	b.Call(what, unix.SYS_PIVOT_ROOT, b.Str("."), b.Str(".")) // the old root is now stacked on the new one
	b.Call("detaching the old root", unix.SYS_UMOUNT2, b.Str("."), spawn.Num(unix.MNT_DETACH))
	b.chdir(what, "/")
}

// attach puts the agent's mounts and the scratch directories in place. Targets are looked up in the new root.
func (b *builder) attach() {
	b.attachBinds(false)
	for _, l := range b.c.Links {
		b.Call("linking /dev/"+l[0], unix.SYS_SYMLINKAT, b.Str(l[1]), spawn.Num(atCwd), b.Str("/dev/"+l[0])).Forgive(unix.EEXIST)
	}
	if b.c.DevPTS != "" {
		const what, dir = "mounting /dev/pts", "/dev/pts"
		first := b.mount(what, "devpts", dir, "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, b.c.DevPTS).Forgive(unix.ENOENT)
		b.makeTarget(what, dir, false)
		b.mount(what, "devpts", dir, "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, b.c.DevPTS)
		first.ElseSkip()
	}
	for i, s := range b.c.Scratch {
		b.place(b.scratch[i], s.Target, false)
	}
	b.attachBinds(true)
}

// attachBinds places the early mounts, such as /dev, or the late ones, which may lie over scratch directories.
func (b *builder) attachBinds(late bool) {
	for i, m := range b.c.Binds {
		if m.Late == late {
			b.place(b.binds[i], m.Target, m.File)
		}
	}
}

// cover hides what a guest has no business with.
func (b *builder) cover() {
	for _, p := range b.c.MaskFiles {
		b.mount("masking "+p, "/dev/null", p, "", unix.MS_BIND, "").Forgive(unix.ENOENT)
	}
	for i, p := range b.c.MaskDirs {
		b.moveMount("masking "+p, b.masks[i], p).Forgive(unix.ENOENT)
	}
	for _, p := range b.c.ReadOnlyPaths {
		what := "making " + p + " read-only"
		flags := spawn.Num(unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC | unix.AT_RECURSIVE)
		open := b.Call(what, unix.SYS_OPEN_TREE, spawn.Num(atCwd), b.Str(p), flags).
			Forgive(unix.ENOENT)
		fd := open.Result()
		b.setReadOnly(p, fd.Arg(), b.Str(""), unix.AT_EMPTY_PATH)
		b.moveMount(what, fd, p)
		b.close(fd)
		open.ThenSkip()
	}
	for _, s := range b.c.StandIns {
		b.mount("covering "+s[1], s[0], s[1], "", unix.MS_BIND, "").Forgive(unix.ENOENT)
	}
}
