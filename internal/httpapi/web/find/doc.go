// Package find is the page that finds things: in all lists that the viewer may read, through the API's own searches. Its results are what
// the command palette shows, too.
//
// A request runs in the server's goroutine for it.
package find
