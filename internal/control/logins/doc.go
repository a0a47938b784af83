// Package logins is what commands about auth methods and binding rules do to the state: pure functions over a transaction of the store.
//
// What of them is well formed and who may write them is the use cases' (control/access); telling of changes is the state machine's.
// It starts no goroutines.
package logins
