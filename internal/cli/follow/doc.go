// Package follow waits for what a change leads to and prints how it goes: an evaluation until its allocations have
// started or ended, a deployment until its end. It polls by blocking queries and starts no goroutine.
package follow
