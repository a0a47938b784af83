// Package supervisor is the agent's side of drover-init: it launches one for a task, connects to it (again, after an
// agent restart) and speaks its protocol. Everything that a task, its executions and its files need goes through a
// Client. The server is package initd; the bytes between them are package proto.
package supervisor
