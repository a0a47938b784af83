package raftlog

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/hashicorp/raft"
	"golang.org/x/sys/unix"
)

// torn is how the names of snapshots end that are not whole.
const torn = ".tmp"

// tidySnapshots removes what is left of snapshots that could not be written: raft's store leaves it on a full disk, each time that the
// leader tries again. Where the disk has no room for one more, it removes the older ones first: a log that cannot be cut grows until
// nothing is taken any more.
type tidySnapshots struct {
	raft.SnapshotStore
	dir  string
	free func() (bytes uint64) // of the disk

	mu   sync.Mutex // held while one begins
	open sync.Map   // names of folders that are being written
}

func tidied(s raft.SnapshotStore, dir string) *tidySnapshots {
	return &tidySnapshots{SnapshotStore: s, dir: dir, free: func() uint64 {
		var disk unix.Statfs_t
		if unix.Statfs(dir, &disk) != nil {
			return math.MaxUint64 // then the snapshot tells what is wrong
		}
		return disk.Bavail * uint64(disk.Bsize)
	}}
}

// Create implements raft.SnapshotStore.
func (t *tidySnapshots) Create(
	version raft.SnapshotVersion, index, term uint64, members raft.Configuration, membersIndex uint64, by raft.Transport,
) (raft.SnapshotSink, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.makeRoom(); err != nil {
		return nil, err
	}
	sink, err := t.SnapshotStore.Create(version, index, term, members, membersIndex, by)
	if err != nil {
		return nil, errors.Join(err, removeTorn(t.dir, &t.open))
	}
	name := sink.ID() + torn
	t.open.Store(name, true)
	return &tidySink{SnapshotSink: sink, done: func() error {
		defer t.open.Delete(name)
		return os.RemoveAll(filepath.Join(t.dir, name))
	}}, nil
}

// makeRoom removes all snapshots but the newest if one that is a quarter larger than that would not fit.
func (t *tidySnapshots) makeRoom() error {
	list, err := t.List() // the newest first
	if err != nil || len(list) < 2 || t.free() >= uint64(list[0].Size)*5/4 {
		return err
	}
	for _, old := range list[1:] {
		if err := os.RemoveAll(filepath.Join(t.dir, old.ID)); err != nil {
			return fmt.Errorf("removing an older raft snapshot from a full disk: %w", err)
		}
	}
	return nil
}

// tidySink is a snapshot that is being written. done removes what is left of it; a whole one has another name by then.
type tidySink struct {
	raft.SnapshotSink
	done func() error
}

// Close implements raft.SnapshotSink.
func (s *tidySink) Close() error { return errors.Join(s.SnapshotSink.Close(), s.done()) }

// Cancel implements raft.SnapshotSink.
func (s *tidySink) Cancel() error { return errors.Join(s.SnapshotSink.Cancel(), s.done()) }

// removeTorn removes what snapshots that never ended left behind, but those that are being written.
func removeTorn(dir string, open *sync.Map) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("listing the raft snapshots: %w", err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), torn) {
			continue
		}
		if open != nil {
			if _, busy := open.Load(e.Name()); busy {
				continue
			}
		}
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return fmt.Errorf("removing a torn raft snapshot: %w", err)
		}
	}
	return nil
}
