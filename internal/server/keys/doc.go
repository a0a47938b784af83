// Package keys makes what wraps the keyring's root keys from the configuration: a cloud's key, a transit service, a text, or files that
// servers give each other.
//
// What root keys are for, and when they are rotated, is control/keyring's. It starts no goroutines.
package keys
