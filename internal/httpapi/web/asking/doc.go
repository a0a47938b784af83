// Package asking asks the API in this process as the viewer of a page, whose token it takes along. It starts no goroutines.
package asking
