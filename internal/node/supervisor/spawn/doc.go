// Package spawn starts programs by vfork and exec, with what package syscall cannot do for a child: resource limits,
// joining control groups by already opened files, and failures that name the step. The child shares the memory of the
// caller until it execs, so that a start costs no copy of page tables.
//
// Of a staged child the parent decides what it does between fork and exec only when it runs, in namespaces of its own: it
// is given a list of system calls.
//
// What is started is the caller's. It starts no goroutines; a start locks its thread until the child executes.
package spawn
