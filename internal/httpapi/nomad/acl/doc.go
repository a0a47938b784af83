// Package acl answers the part of the Nomad face that is about access control: bootstrap, tokens, policies, roles, one-time tokens.
//
// Who may do what with them, and the rules for them, are the use cases' (control/access): handlers hand the request's caller on. It starts
// no goroutines.
package acl
