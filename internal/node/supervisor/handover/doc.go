// Package handover gives a drover-init that somebody else starts (a container runtime) its descriptors.
//
// A container sees only what is mounted into it, and whatever is mounted can be seen by the guest too. So the socket that
// the supervisor serves is never mounted: the agent listens on it in a folder of the host, and hands the listening
// descriptor over.
//
// For that, one folder with one other socket is mounted. drover-init is the container's first process, and at that time
// its only one. It connects to this socket, gets its descriptors in one message, and executes itself again without the
// argument. The agent accepts one connection, and closes and removes the socket before it lets drover-init go on. So the
// guest's first program finds an empty folder.
//
// drover-init is not dumpable, so a guest's root without CAP_SYS_PTRACE cannot take the descriptors out of it. The log
// folder is a detached mount, so even with that capability nothing leads from it up into the host.
//
// It starts no goroutines.
package handover
