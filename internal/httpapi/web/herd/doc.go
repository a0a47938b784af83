// Package herd is the pages about the cluster as a whole, its fleet, and what runs in warm runners: the overview, environments, runners,
// executions, machines and events. The page of which they are part asks the API for them, with the viewer's token.
//
// A request runs in the server's goroutine for it.
package herd
