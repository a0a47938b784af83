// Package supervised is what drivers whose tasks run under drover-init share. It has a task's connection to its
// supervisor, which is made anew when it breaks, and all of a driver.Handle that goes over it. It also makes the task's
// environment and opens its log folder.
//
// What a task is allowed is its driver's. It starts no goroutines that outlive a call.
package supervised
