// Package api is how commands reach an agent: the target that flags and environment name, the client of the Nomad API
// with errors that say what can be done, and looking things up by the beginning of their ids. It prints nothing, and
// starts no goroutine.
package api
