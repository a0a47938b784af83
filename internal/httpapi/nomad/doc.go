// Package nomad is the face that speaks Nomad's HTTP API under /v1: the unmodified client library
// github.com/hashicorp/nomad/api works against it. It translates and holds no logic: reads come from a Snapshot,
// writes go to an Intake, what only a node knows comes from Nodes, events from Events.
package nomad
