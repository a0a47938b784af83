// Package host is what this machine runs tasks with, as the configuration wants it: the drivers, and what they share, which are
// control groups, images, networks and devices.
//
// It translates the configuration into that of each part and says in which order the parts are closed. What the parts do is
// node/driver's, node/cgroup's, node/image's, node/groupnet's and node/device's; which tasks run is node/agent's. CollectImages is the
// only loop, in the goroutine of who calls it: it ends with its context.
package host
