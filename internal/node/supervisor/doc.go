// Package supervisor is the agent's side of drover-init: it launches one for a task, connects to it (again, after an
// agent restart) and speaks its protocol. Everything that a task, its executions and its files need goes through a
// Client. The guest's side, which is linked into drover-init, lies below guest; the bytes between them are package wire.
//
// The agent's owner of a task is its driver. A Client has a goroutine that reads, which ends with the connection. A
// process has one that reaps it, which ends with drover-init.
package supervisor
