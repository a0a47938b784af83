// Package cgroup gives each task a control group with limits, on cgroup v2, on v1, and on hybrids whose v2 tree has no
// controllers. It talks to the kernel's files only: no systemd, no delegation from inside a guest.
//
// Layout, under the parent ("drover"):
//
//	v1  <controller>/drover/<name>/          the payload, with its limits; executions make children in it
//	    <controller>/drover/supervisors/     all supervisors, so that a payload out of memory does not kill one
//	    <controller>/drover/spare.<pid>.<n>/ what an ended task left as new, for the next one with its limits
//	v2  drover/<name>/init/                  the task's supervisor
//	    drover/<name>/task/                  the payload, with its limits; executions make children in it
//
// In a container on v2 (privileged, or with a writable /sys/fs/cgroup) the root is the container's own group, and its
// processes are moved into the leaf init. A user's agent uses what its service manager was given (Delegate=yes).
//
// Which limits a task has is its driver's. It starts no goroutines.
package cgroup
