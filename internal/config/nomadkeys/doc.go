// Package nomadkeys has the keys of Nomad's configuration that have no effect here, and those that are refused, with the reasons.
//
// It is data, and starts no goroutines.
package nomadkeys
