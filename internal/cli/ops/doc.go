// Package ops has the commands for those who look after a cluster: evaluations, deployments, events, logs,
// servers, the scheduler's configuration, garbage collection, and an archive for who looks for a fault.
//
// Only the last starts goroutines, three for each agent that it asks; they end with its duration and the requests' timeouts.
package ops
