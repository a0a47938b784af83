package cluster

import (
	"fmt"
	"strconv"
	"time"
)

// State is what the servers of a region are together. A server that is alone, which nobody can join, has one without an id.
type State struct {
	// ID is drawn when the cluster begins, and never changes: servers of clusters with different ids do not mix. "" while there is
	// none.
	ID string
	// Epoch is drawn when the cluster begins and whenever a snapshot is restored: indexes of different epochs cannot be compared.
	Epoch string
	// Version is that of the commands, fields and snapshots that may be written: what all servers can read. It only rises.
	Version int
	// Ahead is how far the state's indexes are ahead of the log's: a snapshot of another log was restored, whose indexes were greater.
	Ahead uint64

	CreateIndex uint64
	ModifyIndex uint64
}

// NextEpoch returns the epoch that follows another; "" is before the first. Epochs are compared as text.
func NextEpoch(epoch string) string {
	n, _ := strconv.ParseUint(epoch, 10, 64) // "" and what is no epoch count as 0
	return fmt.Sprintf("%020d", n+1)
}

// VersionOf returns the version that may be written; 1 while there is no state.
func VersionOf(s *State) int {
	if s == nil {
		return 1
	}
	return max(1, s.Version)
}

// EpochAt returns an epoch that is later than those of all clusters that were restored before the time, wherever they are.
func EpochAt(now time.Time) string { return fmt.Sprintf("%020d", now.UnixNano()) }
