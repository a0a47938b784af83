package servers

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/tables"
)

// Files of the log's folder.
const (
	idFile      = "server-id"  // who this server is
	clusterFile = "cluster-id" // which cluster it belongs to
)

// ReadID returns the id of the server whose log is in the folder, and draws it at the first start. Without a folder it is
// another one at each start. Errors: those of the file.
func ReadID(folder string, ids id.Source) (string, error) {
	if folder == "" {
		return ids.New(), nil
	}
	kept, err := read(folder, idFile)
	if err != nil || kept != "" {
		return kept, err
	}
	kept = ids.New()
	return kept, keep(folder, idFile, kept)
}

// identify returns the id of the cluster that this server belongs to; "" if there is none yet. The data of a server that was
// alone becomes a cluster's before any other server hears of it: else the others would take them for a new server's.
func (s *Servers) identify(ctx context.Context) (string, error) {
	kept, err := read(s.cfg.Folder, clusterFile)
	if err != nil || kept != "" || !s.log.Begun() {
		return kept, err
	}
	peers, err := s.log.Peers()
	if err != nil || len(peers) != 1 || peers[0].ID != s.cfg.Self.ID {
		return "", err
	}
	if err := s.log.WaitLeader(ctx); err != nil { // it elects itself
		return "", err
	}
	who := identity{s}
	if known, _ := who.Cluster(); known != "" {
		return known, nil
	}
	clusterID := s.deps.IDs.New()
	return clusterID, who.SetCluster(ctx, clusterID)
}

// identity is where the cluster's id is kept.
type identity struct{ *Servers }

// Cluster implements cluster.Identity.
func (i identity) Cluster() (string, <-chan struct{}) {
	changed := i.deps.Store.Watch(tables.Cluster, "")
	c := i.deps.Store.Snapshot().Cluster()
	if c == nil || c.ID == "" {
		return i.cfg.Self.Cluster, changed
	}
	if i.cfg.Folder != "" {
		i.keeping.Lock() // several wait for the id
		err := keep(i.cfg.Folder, clusterFile, c.ID)
		i.keeping.Unlock()
		if err != nil {
			i.deps.Logger.Warn("keeping the cluster's id", "error", err)
		}
	}
	return c.ID, changed
}

// SetCluster implements cluster.Identity.
func (i identity) SetCluster(ctx context.Context, clusterID string) error {
	_, _, err := i.log.Propose(ctx, &command.InitCluster{ID: clusterID, Epoch: cluster.NextEpoch("")})
	return err
}

// Version implements cluster.Identity.
func (i identity) Version() int { return i.log.Version() }

// Raise implements cluster.Identity.
func (i identity) Raise(ctx context.Context, version int) error {
	_, _, err := i.log.Propose(ctx, &command.RaiseVersion{Version: version})
	return err
}

func read(folder, name string) (string, error) {
	if folder == "" {
		return "", nil
	}
	text, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("reading who the server is: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// keep writes the file unless it says so already.
func keep(folder, name, text string) error {
	if kept, err := read(folder, name); err != nil || kept == text {
		return err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("keeping who the server is: %w", err)
	}
	if err := replace(folder, name, text+"\n"); err != nil {
		return fmt.Errorf("keeping who the server is: %w", err)
	}
	return nil
}

// replace puts a file into the folder such that after a loss of power, too, it is there whole or not at all.
func replace(folder, name, text string) error {
	path := filepath.Join(folder, name)
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	d, err := os.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
