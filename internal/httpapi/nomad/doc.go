// Package nomad is the face that speaks Nomad's HTTP API under /v1: the unmodified client library
// github.com/hashicorp/nomad/api works against it. It translates and holds no logic: reads come from a Snapshot, writes
// go to an Intake, what only a node knows comes from Nodes, events from Events.
//
// This package joins the groups, each a package with its routes beside its handlers: jobs, allocations, evaluations (and
// deployments), nodes (and node pools), cluster (namespaces, search, events) and agent. What they share is in answer. It
// holds no rules about jobs: control/intake does. A request runs in the server's goroutine for it; a stream has one more
// that reads its source and ends with it.
package nomad
