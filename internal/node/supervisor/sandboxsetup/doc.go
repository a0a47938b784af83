// Package sandboxsetup writes the script that furnishes a sandbox: the system calls that build its root file system, close every
// door, and execute drover-init, which from there on is an ordinary supervisor, and PID 1. They are made by a child of the
// agent in fresh namespaces, between fork and exec (see package spawn): a program for it would have to be started, which
// costs more than all of its work, and would have to make way for drover-init, because capabilities and seccomp filters
// belong to threads and a Go program has many.
//
// No path of the host is looked up here, except for an agent without root: whatever is mounted came as a descriptor that
// the agent opened, and targets are resolved after pivot_root, where no link can lead out.
//
// What a sandbox holds is decided by package sandbox. It starts no goroutines.
package sandboxsetup
