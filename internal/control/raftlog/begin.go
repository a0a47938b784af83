package raftlog

import (
	"errors"
	"fmt"

	"github.com/hashicorp/raft"

	"github.com/drover-project/drover"
)

// stableID is where the stable store keeps the id that this server has in the log.
var stableID = []byte("drover server id")

// begin makes the first configuration of the servers, unless there is one or this server waits to be added to one. A log
// that was kept by a server that was alone is given this server's id and address.
func (l *Log) begin(rc *raft.Config, s *stores, t raft.Transport, deps Deps) error {
	known, err := raft.HasExistingState(s.log, s.stable, s.snapshots)
	if err != nil {
		return drover.Errorf(drover.Invalid, "reading the raft state: %w", err)
	}
	if !known {
		if err := l.bootstrap(rc, s, t); err != nil {
			return err
		}
		return l.mark(s)
	}
	kept, err := s.stable.Get(stableID)
	switch {
	case err != nil && err.Error() != "not found": // as the library's own stores say it
		return drover.Errorf(drover.Invalid, "reading the server's id: %w", err)
	case string(kept) == l.cfg.ID || len(kept) == 0 && l.cfg.ID == localID:
		return nil
	case len(kept) > 0 && string(kept) != localID:
		return drover.Errorf(drover.Invalid, "the raft log belongs to server %s and not to %s", kept, l.cfg.ID)
	}
	return l.rename(rc, s, t, deps)
}

func (l *Log) mark(s *stores) error {
	if err := s.stable.Set(stableID, []byte(l.cfg.ID)); err != nil {
		return fmt.Errorf("keeping the server's id: %w", err)
	}
	return nil
}

func (l *Log) bootstrap(rc *raft.Config, s *stores, t raft.Transport) error {
	if l.cfg.Join {
		return nil
	}
	var c raft.Configuration
	for _, p := range l.cfg.Peers {
		c.Servers = append(c.Servers, raft.Server{ID: raft.ServerID(p.ID), Address: raft.ServerAddress(p.Address)})
	}
	if len(c.Servers) == 0 {
		c.Servers = []raft.Server{{ID: rc.LocalID, Address: l.address}}
	}
	if err := raft.BootstrapCluster(rc, s.log, s.stable, s.snapshots, t, c); err != nil {
		return fmt.Errorf("beginning the raft cluster: %w", err)
	}
	return nil
}

// Bootstrap makes this server, which was opened with Join, the only voter of a log that has no servers yet. Errors: Conflict if it
// has; Unavailable.
func (l *Log) Bootstrap() error {
	me := raft.Configuration{Servers: []raft.Server{{ID: raft.ServerID(l.cfg.ID), Address: l.address}}}
	switch err := l.raft.BootstrapCluster(me).Error(); {
	case err == nil:
		l.transport.elect()
		return nil
	case errors.Is(err, raft.ErrCantBootstrap):
		return drover.Errorf(drover.Conflict, "this server belongs to a cluster already")
	default:
		return drover.Errorf(drover.Unavailable, "beginning the cluster: %w", err)
	}
}

// Begun reports whether this server belongs to a cluster: its log knows of servers.
func (l *Log) Begun() bool {
	f := l.raft.GetConfiguration()
	return f.Error() == nil && len(f.Configuration().Servers) > 0
}

// rename makes this server, under its id and address, the only voter of a log whose only voter was called local. The library
// writes a snapshot with the new configuration before it drops the entries that it has. After a crash in between it is done again.
func (l *Log) rename(rc *raft.Config, s *stores, t raft.Transport, deps Deps) error {
	if deps.Fresh == nil {
		return drover.Errorf(drover.Invalid, "the raft log belongs to a server that was alone, and not to %s", l.cfg.ID)
	}
	scratch := &machine{fsm: deps.Fresh(), health: newHealth(), log: deps.Log}
	me := raft.Configuration{Servers: []raft.Server{{ID: rc.LocalID, Address: l.address}}}
	err := guarded(func() error { return raft.RecoverCluster(rc, scratch, s.log, s.stable, s.snapshots, t, me) })
	if err = errors.Join(err, scratch.health.writable()); err != nil {
		return drover.Errorf(drover.Invalid, "giving the raft log this server's id: %w", err)
	}
	return l.mark(s)
}

// onlyVoter reports whether nobody but this server votes.
func (l *Log) onlyVoter() (bool, error) {
	f := l.raft.GetConfiguration()
	if err := f.Error(); err != nil {
		return false, err
	}
	only := false
	for _, s := range f.Configuration().Servers {
		if s.Suffrage != raft.Voter {
			continue
		}
		if string(s.ID) != l.cfg.ID {
			return false, nil
		}
		only = true
	}
	return only, nil
}
