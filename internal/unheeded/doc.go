// Package unheeded knows what of a job is not carried out: who registers it is told, or refused. Its tables are also the
// reference's (docs/reference/nomad.md). It is pure and starts no goroutines.
package unheeded
