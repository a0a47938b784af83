// Package sandboxsetup writes the script that furnishes a sandbox. Its system calls build the root file system, close
// every door, and execute drover-init, which is then an ordinary supervisor and PID 1.
//
// A child of the agent makes the calls in fresh namespaces, between fork and exec (see package spawn). To start a program
// for them would cost more than all of their work. A Go program could not do it in place of drover-init either:
// capabilities and seccomp filters belong to threads, of which it has many.
//
// No path of the host is looked up here, except for an agent without root. Whatever is mounted came as a descriptor that
// the agent opened. Targets are resolved in the new root, where no link can lead out.
//
// What a sandbox holds is decided by package sandbox. It starts no goroutines.
package sandboxsetup
