// Package tables names the tables of the store and the keys under which their rows are watched. The store and the faces
// share the names, so that neither can rename a table that the other waits for.
// It starts no goroutines.
package tables
