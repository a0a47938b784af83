// Package keyring holds the root keys of the cluster: they encrypt what is kept secret and sign identities.
//
// The state has each root key wrapped, that is encrypted with a key-encryption key, which a Wrapper has. Files keep it in a
// folder of each server, and servers ask each other for it; packages transit and kms leave it to a service. So neither the log
// nor a snapshot has a key that opens anything. What is unwrapped is in memory alone.
//
// The leader makes the first key, rotates, activates what was prepublished, and removes what nothing needs (Lead). Every server unwraps
// keys as they come (Run). Both are started by who owns the Keyring; a call runs in its caller's goroutine.
package keyring
