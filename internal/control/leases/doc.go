// Package leases has the rules by which warm runners are leased to servers: who gets the next one, how many a pool needs, how long
// a server may hand out without having heard of the leader, and when the leader takes a server's leases away.
//
// That a runner is handed out at most once does not depend on clocks: what was leased and is not recorded as claimed when an
// incarnation ends is stopped, never leased again. The times only keep a server that is cut off from handing out runners that
// are about to be stopped.
//
// Everything here is a value, which the state machine and the servers' loops ask. It starts no goroutine.
package leases
