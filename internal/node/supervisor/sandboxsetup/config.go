package sandboxsetup

import "fmt"

// Config is what a sandbox looks like from inside.
type Config struct {
	Hostname string
	// Lowers are the read-only layers of the root, the topmost first. At least one, and the topmost has a directory
	// /proc.
	Lowers []Source
	// Outer, if not nil, has been made of them already.
	Outer *Outer
	// Proc, if not nil, is the position of a detached mount that becomes /proc, for a child of spawn.StartBare. Else the child mounts it,
	// which needs a mount namespace with one that can be seen.
	Proc *int
	// SizeMB bounds all that the guest writes outside Binds; 0 = no bound. Inodes likewise.
	SizeMB   int64
	Inodes   int64
	ReadOnly bool // the root; Scratch stays writable
	// Scratch are directories on the size-limited file system.
	Scratch []Scratch
	// Binds are attached in order.
	Binds []Bind
	// Links are symbolic links to make in /dev: name, target. Those that are there stay.
	Links [][2]string
	// Logs, if not nil, is the task's log folder with owners as the supervisor can write them: it becomes descriptor 5.
	Logs *Source
	// DevPTS are the options of a private /dev/pts; "" = none.
	DevPTS   string
	Loopback bool // bring lo up
	// MaskFiles and MaskDirs are covered by something empty, ReadOnlyPaths by themselves read-only. Those that the
	// kernel does not have are left out.
	MaskFiles []string
	// StandIns are files inside that cover others: from, over.
	StandIns      [][2]string
	MaskDirs      []string
	ReadOnlyPaths []string
	// NoUserNamespaces forbids nested user namespaces.
	NoUserNamespaces bool
	KeepCaps         uint64 // the bounding set: bit n is capability n
	Seccomp          []byte // assembled program: 8 bytes an instruction, as the kernel has them; empty = none
	Rlimits          []Rlimit
	// Join are positions of files that the child writes "0" into: its v1 control groups.
	Join []int
	// OneUser: only the agent's own user is mapped, as the sandbox's root.
	OneUser bool
}

// Outer is a root that was made outside of the sandbox's user namespace: positions of detached mounts. Writable is the
// size-limited file system, with the directories root and empty, and belongs to the sandbox's root.
type Outer struct{ Writable, Root int }

// WritableOptions are those of the size-limited file system.
func (c *Config) WritableOptions() string {
	options := "mode=0755"
	if c.SizeMB > 0 {
		options += fmt.Sprintf(",size=%dm", c.SizeMB)
	}
	if c.Inodes > 0 {
		options += fmt.Sprintf(",nr_inodes=%d", c.Inodes)
	}
	return options
}

// Scratch is a private writable directory.
type Scratch struct {
	Target string
	Mode   uint32
	UID    uint32 // in the sandbox; also the group
}

// Source is a tree: a detached mount (its flags were set by the agent), or, for an agent that may not make one, a path
// of the host.
type Source struct {
	FD       int    // position in the list of descriptors; < 0: Path
	Path     string //
	ReadOnly bool   // of Path
}

// Bind attaches a tree or a file.
type Bind struct {
	Source
	Target string
	File   bool
	Late   bool // after Scratch, so that it may lie in one
}

// Rlimit is one resource limit.
type Rlimit struct {
	Resource uint32
	Soft     uint64
	Hard     uint64
}
