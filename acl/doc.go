// Package acl is the vocabulary of access control: tokens, policies, roles, one-time tokens, ways to log in and the rules that bind who
// logged in, under Nomad's wire names. It has no I/O and starts no goroutines.
//
// What a policy's rules say is package policy's, below internal; what they allow is package rights'. A Secret never prints itself.
package acl
