// Package rawexec is the driver raw_exec: a process of the machine, supervised but not isolated.
//
// Processes, logs and executions are the supervisor's; here is what a raw process may be. It starts no goroutines of
// its own.
package rawexec
