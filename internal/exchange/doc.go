// Package exchange holds the seam between a node and control: what a node tells control (Controller), and what can be
// asked of a node about running things (Workloads, AllocControl, LogReader). It has types and interfaces only; node/agent
// and control/assignment implement them, internal/link carries both directions between processes.
//
// It holds no behaviour and starts no goroutines.
package exchange
