// Package completion lets shells complete ids and names of what there is at the agent, and installs what shells need for it. Which
// words of a command may be what is read from its line of usage. It starts no goroutine.
package completion
