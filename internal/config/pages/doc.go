// Package pages is the block ui of the configuration: whether the web page is served, what it says of its cluster, and what browsers let it
// load. How pages look is httpapi/web's.
// It starts no goroutines.
package pages
