// Package callers says who calls a server: whom a token is of where the server may be behind its leader, and how often strangers may come.
//
// What a token allows is package rights'. Knowing has one goroutine while somebody waits for the leader's state.
package callers
