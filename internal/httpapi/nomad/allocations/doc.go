// Package allocations is the group of the Nomad face that reads and steers allocations: all below /v1/allocation(s) and
// /v1/client/{allocation,fs}, with commands in tasks (exec), files and logs.
//
// What only a node knows it asks of the node, through Nodes. An exec websocket has three goroutines beside the
// request's own (its reader, the input's feeder, the pinger); they end with the connection, before the handler returns.
package allocations
