// Package fleetview shows what the API says of the fleet: pools, machines, what they cost, what waits for them, and what would be done
// now. It asks nobody anything, and starts no goroutine.
package fleetview
