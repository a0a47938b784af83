// Package cluster starts servers that are one cluster, for "drover bench cluster": each a process of this program, with a
// node beside them, or with thousands that are simulated. It asks them through their API, as everybody does.
//
// Its goroutines: the one that reads an agent's output ends with the agent, and those that write while a leader is killed end
// with that measurement. Those of simulated nodes end when the nodes are closed, and those that fetch a profile with the
// profile.
package cluster
