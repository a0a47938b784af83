// Package machines does to the state what commands say about the fleet: who it is, its pools, its machines and what they cost. Its
// functions are pure: they read and write a transaction of the store.
//
// What is bought and returned is decided in plane fleet. It starts no goroutines.
package machines
