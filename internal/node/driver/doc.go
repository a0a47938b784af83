// Package driver is the seam between the node agent and what runs tasks. Implementations: rawexec, sandbox, docker,
// fake; drivertest is the suite that all of them pass.
//
// It starts nothing. Who calls Start owns the Handle, and its Wait runs in the caller's goroutine.
package driver
