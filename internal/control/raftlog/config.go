package raftlog

import (
	"context"
	"errors"
	"net"
	"time"
)

// Config says where the log is and who shares it.
type Config struct {
	ID      string // of this server, for ever; default "local", for who is alone
	DataDir string // the log is in DataDir/raft; "" = in memory only

	Network   Network // how others are reached; nil = alone
	Advertise string  // address the others reach it at; default where Network listens
	Join      bool    // wait to be added instead of beginning a cluster of one
	Peers     []Peer  // all first voters, this one too, to begin a cluster of several; default: this one

	// Patience is the factor of all times after which a silent server is given up; default 1.
	Patience int

	SnapshotInterval  time.Duration // how often to look; default 15s, so that who is restarted again and again writes some, too
	SnapshotThreshold uint64        // entries since the last snapshot that make a new one worth it; default 16384
	// SnapshotBytes of entries since the last one make a new one worth it at once; default 256 MiB, or an eighth of a small disk.
	SnapshotBytes int64
	TrailingLogs  uint64 // entries kept behind a snapshot for slow followers; default 4096, 256 if alone
	Retain        int    // snapshots kept; default 2
	// MinFree is how many bytes must be free on the disk for a write to be taken; default 32 MiB, or an eighth of a small disk.
	MinFree uint64
}

// Network is how servers reach each other. They prove to each other who they are before it hands a connection over.
type Network interface {
	net.Listener
	// Dial connects to the server with the id. It fails if another server is at the address.
	Dial(ctx context.Context, id, address string) (net.Conn, error)
}

// Peer is a server of the cluster.
type Peer struct {
	ID      string
	Address string
	Voter   bool
	Leader  bool
}

// Validate reports all problems and fills in the defaults.
func (c *Config) Validate() error {
	var errs []error
	if c.ID == "" {
		c.ID = localID
	}
	if c.Network == nil && (c.Join || len(c.Peers) > 1) {
		errs = append(errs, errors.New("sharing the log with other servers needs a network"))
	}
	if c.Network != nil && c.ID == localID {
		errs = append(errs, errors.New("a server that others reach needs an id of its own"))
	}
	if c.Join && len(c.Peers) > 0 {
		errs = append(errs, errors.New("either join a cluster or begin one with peers"))
	}
	if c.Patience == 0 {
		c.Patience = 1
	}
	if c.SnapshotInterval == 0 {
		c.SnapshotInterval = 15 * time.Second
	}
	if c.SnapshotThreshold == 0 {
		c.SnapshotThreshold = 16384
	}
	if c.TrailingLogs == 0 {
		c.TrailingLogs = 4096
		if c.alone() {
			c.TrailingLogs = 256
		}
	}
	if c.Retain == 0 {
		c.Retain = 2
	}
	if c.Retain < 0 {
		errs = append(errs, errors.New("retain must be at least 1"))
	}
	return errors.Join(errs...)
}

// alone reports whether no other server can be part of it: then elections need not wait for anybody.
func (c *Config) alone() bool { return c.Network == nil }

// localID is the id of a server that is alone. Data folders of before there were several have it too.
const localID = "local"
