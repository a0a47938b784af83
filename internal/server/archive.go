package server

import (
	"cmp"
	"context"
	"path/filepath"

	"github.com/drover-project/drover/internal/control/archive"
	"github.com/drover-project/drover/internal/control/fsm"
	"github.com/drover-project/drover/internal/httpapi/nomad/cluster"
)

// openArchives makes what saves and restores the state.
func (a *Agent) openArchives(c *control, machine *fsm.FSM) {
	c.archives = archive.New(archive.Deps{
		Image: func() archive.Image { return machine.Image() }, Log: c.log, Clock: a.deps.Clock, IDs: a.deps.IDs, Region: a.cfg.Region,
		Folder: a.logFolder(), Logger: a.deps.Log.With("part", "archive"), Keys: c.keyring, Encrypt: a.cfg.Server.Snapshots.Encrypted(),
	})
	if cfg := a.cfg.Server.Snapshots; cfg != nil {
		every, keep := cfg.Schedule()
		c.saves = archive.NewSchedule(c.archives, cmp.Or(cfg.Folder, filepath.Join(a.dataDir, "snapshots")), every, keep)
		a.metrics.Source(c.saves.Gauges)
	}
}

// nomadArchives are the archives as the Nomad face asks for them.
type nomadArchives struct{ *archive.Archives }

// Save implements cluster.Archives.
func (n nomadArchives) Save(ctx context.Context, encrypt bool) (cluster.Archive, error) {
	s, err := n.Archives.Save(ctx, encrypt)
	if err != nil {
		return cluster.Archive{}, err
	}
	return cluster.Archive{ReadCloser: s, Index: s.Index, Length: s.Length, Digest: s.Digest, Encrypted: len(s.Key) > 0}, nil
}
