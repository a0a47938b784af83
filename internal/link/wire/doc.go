// Package wire is what both ends of a link agree on: messages as msgpack, errors with their codes, and how a procedure is called and
// mounted by connectrpc. Messages are plain Go structs, so there is no second set of types.
//
// What is asked and answered is package link's and package workloads'. It starts no goroutines: a call runs in its caller's.
package wire
