// Package handover gives a drover-init that somebody else starts (a container runtime) its descriptors.
//
// A container sees only what is mounted into it, and whatever is mounted can be seen by the guest too. So the socket
// that the supervisor serves is never mounted: the agent listens on it in a folder of the host, and hands the listening
// descriptor over. For that one folder is mounted, with one socket in it: drover-init, which is the container's first
// process and alone then, connects to it, gets its descriptors in one message, and executes itself again without the
// argument. The agent accepts one connection, closes the socket and removes its file before it lets drover-init go on:
// the first program of the guest finds an empty folder. drover-init is not dumpable, so that a guest's root without
// CAP_SYS_PTRACE cannot take the descriptors out of it; the log folder is a detached mount, so that even one with it
// finds no way up into the host from there.
//
// It starts no goroutines.
package handover
