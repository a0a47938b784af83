// Package hold is drover-init as the only process of a container that has nothing to do but to be there, so that its
// network namespace is.
//
// It serves nothing and starts no goroutines.
package hold
