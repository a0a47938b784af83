// Package nodes is the group of the Nomad face that reads and steers nodes and node pools. It has all below /v1/node(s), and
// what /v1/client says of a node as a whole (statistics, garbage collection, metadata).
//
// It does not drain nodes: control/intake and control/leader do. It owns no goroutines.
package nodes
