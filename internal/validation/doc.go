// Package validation collects everything that is wrong with a document, each problem with its path, so that a user sees
// all of them at once. Of rules of its own it has those of a name, of ids and of a chroot's paths, and imports only the
// standard library: the public vocabulary is built on it.
//
// It starts no goroutines.
package validation
