// Package answer is what the groups of the Nomad face have in common. It says how Nomad's query parameters are read and how a
// query blocks until the state changes. It says how one object, a list, a write and an endless stream are answered.
//
// It knows no route and no use case: those belong to the groups, the packages beside it. Each stream has one goroutine
// that reads its source (Pump), which ends when the request's context does; all else runs in the request's own.
package answer
