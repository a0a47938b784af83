// Package reconcile says what a job should have, compared with the allocations that it has. It covers deployments and canaries,
// updates, failures that are replaced now or later, drains, nodes that do not answer, warm pools and system jobs. It has the
// brake that no policy overrides. What stops or changes in place it writes into the draft (package draft). What is to be placed
// it returns, or asks its caller to place at once (Sites). Where that is best it does not know (package rank). The rules stand
// in DEPLOYMENTS.md. It is pure and has no goroutine.
package reconcile
