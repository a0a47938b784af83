// Package files lists, reads, writes, archives and extracts the guest's files. The work is done inside of the guest, so
// that no path can lead out, and with the rights of the guest's default user unless a request is privileged.
//
// How requests and bytes travel is package server's and channel's. It starts no goroutines; work with a user's rights
// locks its thread.
package files
