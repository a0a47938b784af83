// Package dockererr says in the product's error codes what dockerd answers.
//
// Whether trying again helps is the caller's to say. It starts no goroutines.
package dockererr
