// Package leases has the rules by which warm runners are leased to servers: who gets the next one, and how many a pool needs.
// It also says how long a server may hand runners out without having heard of the leader, and when the leader ends a server's
// leases.
//
// That a runner is handed out at most once does not depend on clocks: what was leased and is not recorded as claimed when an
// incarnation ends is stopped, never leased again. The times only keep a server that is cut off from handing out runners that
// are about to be stopped.
//
// Everything here is a value, which the state machine and the servers' loops ask. It starts no goroutine.
package leases
