// Package nodeview is the pages about nodes: where all of them are and how full, and one node with what can be done with it. The page of
// which they are part asks the API for them, with the viewer's token.
//
// A request runs in the server's goroutine for it.
package nodeview
