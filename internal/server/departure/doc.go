// Package departure is how an agent goes. Before its parts stop, its node is drained and its server hands leadership over or
// leaves the cluster, as the configuration wants that for the signal which ends the process.
//
// How a node drains is node/agent's, and how a server leaves control/cluster's. There is one goroutine for as long as a departure lasts.
package departure
