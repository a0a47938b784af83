// Package drover holds the orchestrator's nouns under the names of Nomad's HTTP API: jobs, nodes, allocations, evaluations,
// deployments. The execution service's are in package execution, the fleet's in package fleet.
//
// The structs carry the field names of Nomad's HTTP API, so they are encoded to and from JSON as they are: there is
// no second set of types. A field is a pointer only where an explicit zero means something else than "not given";
// after Canonicalize such a pointer is never nil. Values that were put into the store are never changed again: copy,
// change the copy, and store that.
//
// The package does no I/O and starts no goroutines.
package drover
