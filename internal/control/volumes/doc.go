// Package volumes does to the state what commands and nodes say about host volumes. A volume is wanted of its node until the node
// says that it has it, or that it has deleted it. What it says is told apart by the index of the request that it is about. Its
// functions are pure: they read and write a transaction of the store.
//
// Who may ask for a volume, and where one goes that names no node, is intake's; the node makes it. It starts no goroutines.
package volumes
