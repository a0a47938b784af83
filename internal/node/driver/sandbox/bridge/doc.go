// Package bridge gives sandboxes an address in a network of the machine's own: a veth pair each, on one bridge, with
// address translation outwards. What they reach is said by the rules of package egress. What comes in comes through a
// Forwarder, port by port.
//
// Which ports a task has is the scheduler's. A Forwarder owns the goroutines of its ports, which end when it closes.
package bridge
