// Package spawn starts programs by vfork and exec. It does what package syscall cannot do for a child: resource limits,
// joining control groups by already opened files, and failures that name the step. The child shares the memory of the
// caller until it execs, so that a start costs no copy of page tables.
//
// A staged child waits in namespaces of its own after the fork. Only then does its parent decide what it does before the
// exec, by a list of system calls.
//
// What is started is the caller's. A start locks its thread until the child executes. StartBare has one goroutine, which keeps its thread
// and ends with the process.
package spawn
