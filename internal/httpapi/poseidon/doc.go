// Package poseidon is the face of openHPI's Poseidon, version 1, as CodeOcean uses it. Routes, statuses, bodies and texts are
// the contract's. Where Poseidon itself is at fault it does the right thing in a way that its clients take. Additions to the
// wire are none: CodeOcean drops messages with unknown keys.
//
// It holds no rules about runners or executions: packages exec/runner and exec/executor do. A request runs in the
// server's goroutine for it, and a WebSocket in two.
package poseidon
