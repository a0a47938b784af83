// Package secrets names what is kept encrypted and what encrypts it: root keys of the keyring.
//
// The nouns have Nomad's names and wire format where Nomad has them. What is stored of a key is wrapped: nothing in this package
// is a key in clear text. It starts no goroutines.
package secrets
