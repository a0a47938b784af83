// Package federation keeps the namespaces and node pools of a region as they are in the authoritative one.
//
// The leader of another region pulls them, waits for changes, and writes what differs into its own log. What is changed or
// deleted in the authoritative region is changed or deleted here, and what exists only here is deleted. Writes are not its
// business: who writes in another region is sent to the authoritative one.
//
// A deletion that the log refuses, such as that of a namespace which has jobs in this region, is tried again at each pull.
//
// It starts no goroutine: Run is called for a term of office and ends with it.
package federation
