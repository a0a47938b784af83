// Package acl has the commands of access control: bootstrap, policies, tokens and roles, with Nomad's words and flags.
//
// It asks an agent by Nomad's API, and has no rules of its own. A login by a browser has a goroutine that serves the
// browser's answer, and ends when the login does.
package acl
