// Package policy reads the policy language of access control, in HCL and in JSON as Nomad's clients write it, and knows its words:
// capabilities, coarse levels and what they stand for.
//
// What the rules of several policies allow together is package rights'. Which policies somebody has is package access'. The package has no
// I/O and starts no goroutines.
package policy
