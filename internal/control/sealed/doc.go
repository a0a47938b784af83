// Package sealed does to the state what commands about encrypted things say: root keys. Its functions are pure: they read and write a
// transaction of the store, and no clock, chance or key.
//
// Who may do what, and what a key opens, is package keyring's. It starts no goroutines.
package sealed
