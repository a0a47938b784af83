// Package client speaks Drover's native API: environments, runners, executions and files. For jobs, use
// github.com/hashicorp/nomad/api against the same address.
//
// Errors are *drover.Error: those of the server with its code, Unavailable when it is not reached or the connection broke,
// Canceled when the context ended.
//
// It holds no state of the server's and starts no goroutines but those of net/http. A call runs in its caller's, and a Session
// or Events belongs to who opened it, until Close.
package client
