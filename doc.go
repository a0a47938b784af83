// Package drover holds the nouns of Drover: jobs, nodes, allocations, environments, runners, executions.
//
// The structs carry the field names of Nomad's HTTP API, so they are encoded to and from JSON as they are: there is
// no second set of types. A field is a pointer only where an explicit zero means something else than "not given";
// after Canonicalize such a pointer is never nil. Values that were put into the store are never changed again: copy,
// change the copy, and store that.
//
// The package does no I/O and imports only the standard library.
package drover
