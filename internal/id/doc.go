// Package id makes identifiers. A Source is passed in wherever ids are made, so that simulations repeat.
//
// It says nothing about what an id is of. It starts no goroutines.
package id
