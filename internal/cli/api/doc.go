// Package api is how commands reach an agent. It has the target that flags and environment name, and the client of the Nomad
// API with errors that say what can be done. It also looks things up by the beginning of their ids. It prints nothing, and
// starts no goroutine.
package api
