// Package lists is the pages that list jobs, allocations and nodes: the API searches, filters, sorts and cuts them, so that a page costs
// the same however long its list is.
//
// A request runs in the server's goroutine for it.
package lists
