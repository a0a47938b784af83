// Package bridge gives sandboxes an address in a network of the machine's own: a veth pair each, on one bridge, with
// address translation outwards. What they reach is said by the rules of package egress. What comes in comes through a
// Forwarder, port by port.
//
// Each guest has its place by its address of IPv4: the name of its pair, its hardware address, and its address of IPv6 follow from it. So
// the bridge, the machine and the guest are told where each is, and need not ask or believe anybody. Agents of one machine know by locked
// files which bridges are in use.
//
// Which ports a task has is the scheduler's. A Forwarder owns the goroutines of its ports, which end when it closes.
package bridge
