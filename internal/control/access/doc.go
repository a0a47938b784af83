// Package access says who asks and what they may do, and holds the use cases of access control. It resolves secrets to rights.
// It makes, reads and removes tokens, policies, roles and one-time tokens, with the rules and words of Nomad.
//
// What rules say and what they allow are packages policy and rights; what a command does to the state is package fsm's. Whether access
// control is on, and what each route needs, is for who calls. It starts no goroutines: a use case runs in its caller's.
package access
