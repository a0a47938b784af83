// Package acl has the commands of access control: bootstrap, policies, tokens and roles, with Nomad's words and flags.
//
// It asks an agent by Nomad's API, and has no rules of its own. It starts no goroutines.
package acl
