// Package ops has the commands for those who look after a cluster: evaluations, deployments, namespaces, events, logs,
// servers, the scheduler's configuration and garbage collection. It starts no goroutine.
package ops
