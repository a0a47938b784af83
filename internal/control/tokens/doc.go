// Package tokens is what commands about tokens, policies, roles and one-time tokens do to the state: functions over a transaction of the
// store.
//
// What of them is well formed and who may write them is the use cases' (control/access), auth methods and binding rules are package
// logins'; telling of changes is the state machine's. It starts no goroutines.
package tokens
