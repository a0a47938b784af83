// Package execplane is the execution service of an agent. It joins what hands out runners (exec/runner) and runs code in them
// (exec/executor), under this server's lease (server/lessee), to the control plane's log, state and nodes, or to an existing Nomad
// cluster's (exec/nomadbackend).
//
// It decides nothing: how many runners there are is control/scheduler's, and which server answers for one is lessee.Directory's. The
// environments of the configuration are made here, by the server that leads.
//
// Parts own the goroutines; they end with their context.
package execplane
