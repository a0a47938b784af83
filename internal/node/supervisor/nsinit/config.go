package nsinit

// Config is what a sandbox looks like from inside. Descriptors are positions in the list that travels with it.
type Config struct {
	Hostname string
	// Lowers are detached mounts, the topmost first: the read-only layers of the root. At least one, and the topmost
	// has a directory /proc.
	Lowers []int
	// SizeMB bounds all that the guest writes outside Binds; 0 = no bound. Inodes likewise.
	SizeMB   int64
	Inodes   int64
	ReadOnly bool // the root; Scratch stays writable
	// Scratch are directories on the size-limited file system.
	Scratch []Scratch
	// Binds are detached mounts, attached in order.
	Binds []Bind
	// DevPTS mounts a private /dev/pts.
	DevPTS   bool
	Loopback bool // bring lo up
	// MaskFiles and MaskDirs are covered by something empty, ReadOnlyPaths by themselves read-only. Those that the
	// kernel does not have are left out.
	MaskFiles     []string
	MaskDirs      []string
	ReadOnlyPaths []string
	// NoUserNamespaces forbids nested user namespaces.
	NoUserNamespaces bool
	KeepCaps         uint64 // the bounding set: bit n is capability n
	Seccomp          []byte // assembled program: 8 bytes an instruction, as the kernel has them; empty = none
	Rlimits          []Rlimit
}

// Scratch is a private writable directory.
type Scratch struct {
	Target string
	Mode   uint32
	UID    uint32 // in the sandbox; also the group
}

// Bind attaches a detached mount (its flags were set by the agent).
type Bind struct {
	FD     int
	Target string
	File   bool // the target is a file
}

// Rlimit is one resource limit.
type Rlimit struct {
	Resource uint32
	Soft     uint64
	Hard     uint64
}
