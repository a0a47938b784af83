// Package registration says under which names and addresses the services of an allocation are found. A registration is
// nothing that somebody has to keep: it follows from the allocation, its job and its node, for as long as it runs.
//
// Who registers it in the state is package store, who checks services package node/checks. It is pure: no I/O, no goroutine.
package registration
