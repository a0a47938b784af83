// Package vars answers the part of the Nomad face that is about variables: lists, reads, writes with check-and-set, and locks.
//
// Who may do what, and what is encrypted how, is package control/variables': handlers hand the request's caller on. It starts no
// goroutines.
package vars
