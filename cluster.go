package drover

// Cluster is what the servers of a region are together. There is none while a server is alone and nobody can join it.
type Cluster struct {
	// ID is drawn when the cluster begins, and never changes: servers of clusters with different ids do not mix.
	ID string
	// Epoch is drawn when the cluster begins and whenever a snapshot is restored: indexes of different epochs cannot be compared.
	Epoch string
	// Version is that of the commands, fields and snapshots that may be written: what all servers can read. It only rises.
	Version int

	CreateIndex uint64
	ModifyIndex uint64
}
