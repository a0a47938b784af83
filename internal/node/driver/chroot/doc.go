// Package chroot has Nomad's drivers exec and java: a program of the machine, or of an artifact, in a sandbox whose root is parts
// of the machine (chroot_env of the client's configuration). It reads Nomad's keys, and package sandbox does the rest.
//
// It starts no goroutines.
package chroot
