package cluster

import (
	"fmt"
	"strconv"
)

// State is what the servers of a region are together. There is none while a server is alone and nobody can join it.
type State struct {
	// ID is drawn when the cluster begins, and never changes: servers of clusters with different ids do not mix.
	ID string
	// Epoch is drawn when the cluster begins and whenever a snapshot is restored: indexes of different epochs cannot be compared.
	Epoch string
	// Version is that of the commands, fields and snapshots that may be written: what all servers can read. It only rises.
	Version int

	CreateIndex uint64
	ModifyIndex uint64
}

// NextEpoch returns the epoch that follows another; "" is before the first. Epochs are compared as text.
func NextEpoch(epoch string) string {
	n, _ := strconv.ParseUint(epoch, 10, 64) // "" and what is no epoch count as 0
	return fmt.Sprintf("%020d", n+1)
}
