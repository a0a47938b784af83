// Package cluster is the group of the Nomad face for what belongs to the cluster as a whole: namespaces, search, the
// event stream, the scheduler's configuration and garbage collection.
//
// An event stream has one goroutine that reads its subscription; it ends with the request.
package cluster
