// Package keys answers the part of the Nomad face that is about root keys: the keyring, and the public keys that identities are verified
// with.
//
// What a key is and does is package control/keyring's. It starts no goroutines.
package keys
