package spawn

import _ "unsafe" // for go:linkname

// The runtime's fork hooks, which it keeps open to packages that fork by themselves (go.dev/issue/67401).

//go:linkname beforeFork syscall.runtime_BeforeFork
func beforeFork()

//go:linkname afterFork syscall.runtime_AfterFork
func afterFork()

//go:linkname afterForkInChild syscall.runtime_AfterForkInChild
func afterForkInChild()

//go:noescape
func rawVfork(trap, a1, a2 uintptr) (pid, errno uintptr)

//go:noescape
func rawClone(args *cloneArgs, size uintptr, m *machine, entry uintptr) (pid, errno uintptr)
