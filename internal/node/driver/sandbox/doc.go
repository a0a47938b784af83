// Package sandbox is the driver that runs tasks in Linux namespaces of their own, with no daemon. A task has an overlay
// root over a read-only image with a size-limited writable layer, a user namespace, cgroup limits and a seccomp filter.
// The first process is drover-init; Start costs a few milliseconds.
//
// The agent opens everything that the sandbox may see and hands it in as descriptors (launch.go); package sandboxsetup
// puts it together inside. Nothing that runs with the machine's rights ever follows a path which a guest can change.
//
// Processes inside are the supervisor's. The driver's few goroutines end with the start that made them.
package sandbox
