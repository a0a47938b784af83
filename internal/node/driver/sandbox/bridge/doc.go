// Package bridge gives sandboxes an address in a network of the machine's own: a veth pair each, on one bridge, with
// address translation outwards. Sandboxes cannot reach each other, nor what listens on the machine, nor link-local
// addresses (a cloud's metadata). What comes in comes through a Forwarder, port by port.
package bridge
