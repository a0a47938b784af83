// Package feasible decides which nodes can run a group at all, whatever else runs there: constraints and their operands,
// drivers, host volumes, devices. Computed classes let one decision stand for many nodes. It does not look at what is used on a
// node (package rank) and gives nothing out (package grant). It is pure and has no goroutine.
package feasible
