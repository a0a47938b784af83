// Package volumes answers the part of the Nomad face that is about host volumes: lists, reads, and requests to create, register and delete
// one. Of CSI volumes there are none.
//
// It starts no goroutines.
package volumes
