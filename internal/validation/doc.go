// Package validation collects everything that is wrong with a document, each problem with its path, so that a user sees
// all of them at once. It has no rules of its own but that of a name, and imports only the standard library: the public
// vocabulary is built on it.
//
// It starts no goroutines.
package validation
