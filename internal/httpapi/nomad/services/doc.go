// Package services answers Nomad's requests about services: which there are, and where each is found.
//
// Registrations follow from allocations (package registration); nothing here changes them. It starts no goroutines.
package services
