package raftlog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
	"golang.org/x/sys/unix"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
)

// stores is where raft keeps things.
type stores struct {
	log       raft.LogStore
	stable    raft.StableStore
	snapshots raft.SnapshotStore
	close     func() error
}

const logCacheEntries = 128

func openStores(cfg *Config, h *health, c clock.Clock, logger *logger) (*stores, error) {
	if cfg.DataDir == "" {
		mem := raft.NewInmemStore()
		return &stores{mem, mem, raft.NewInmemSnapshotStore(), func() error { return nil }}, nil
	}
	dir := filepath.Join(cfg.DataDir, "raft")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the raft directory: %w", err)
	}
	folder := filepath.Join(dir, "snapshots")
	if err := removeTorn(folder, nil); err != nil {
		return nil, err
	}
	h.dir, h.minFree, h.maxBytes = dir, minFree(cfg, dir), snapshotBytes(cfg, dir)
	snapshots, err := raft.NewFileSnapshotStoreWithLogger(dir, cfg.Retain, logger)
	if err != nil {
		return nil, fmt.Errorf("opening the raft snapshots: %w", err)
	}
	newest, err := newestIndex(snapshots)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "raft.db")
	size, err := verifyFile(path, newest)
	if err != nil {
		return nil, err
	}
	h.grew(size)
	bolt, err := openBolt(path, false)
	if err != nil {
		return nil, err
	}
	var log raft.LogStore = &checkedLog{bolt, h, c}
	if !cfg.alone() { // only others have the newest entries read again
		if log, err = raft.NewLogCache(logCacheEntries, log); err != nil {
			return nil, errors.Join(err, bolt.Close())
		}
	}
	return &stores{log, &patientStable{bolt, h, c}, tidied(snapshots, folder), bolt.Close}, nil
}

// newestIndex is the last entry that the newest snapshot stands for; 0 without any.
func newestIndex(s raft.SnapshotStore) (uint64, error) {
	list, err := s.List()
	if err != nil || len(list) == 0 {
		return 0, err
	}
	return list[0].Index, nil
}

// minFree is the configured space that must be free, or the default.
func minFree(cfg *Config, dir string) uint64 {
	const usual, share = 32 << 20, 8
	var s unix.Statfs_t
	switch {
	case cfg.MinFree > 0:
		return cfg.MinFree
	case unix.Statfs(dir, &s) != nil:
		return usual
	}
	return min(usual, s.Blocks*uint64(s.Bsize)/share)
}

// snapshotBytes is the configured size from which the log is cut, or the default. A log that fills its disk cannot be cut any more:
// the snapshot has no room.
func snapshotBytes(cfg *Config, dir string) int64 {
	const usual, share = 256 << 20, 8
	var s unix.Statfs_t
	switch {
	case cfg.SnapshotBytes > 0:
		return cfg.SnapshotBytes
	case unix.Statfs(dir, &s) != nil:
		return usual
	}
	return min(usual, int64(s.Blocks)*s.Bsize/share)
}

// verifyFile verifies the whole file before it is opened for writing, and returns how many bytes its entries have. bbolt reads it in a
// goroutine of its own then, where the fault that a damaged page causes would end the process.
func verifyFile(path string, snapshot uint64) (size int64, err error) {
	if info, err := os.Stat(path); errors.Is(err, os.ErrNotExist) || err == nil && info.Size() == 0 {
		return 0, nil
	}
	bolt, err := openBolt(path, true)
	if err != nil {
		return 0, err
	}
	err = guarded(func() (err error) { size, err = verify(bolt, snapshot); return err })
	if err = errors.Join(err, bolt.Close()); err != nil {
		return 0, drover.Errorf(drover.Invalid, "the raft log %s is damaged: %w", path, err)
	}
	return size, nil
}

func openBolt(path string, readOnly bool) (store *raftboltdb.BoltStore, err error) {
	err = guarded(func() (err error) {
		store, err = raftboltdb.New(raftboltdb.Options{
			Path: path,
			BoltOptions: &bbolt.Options{
				ReadOnly: readOnly, Timeout: time.Second, NoFreelistSync: true, FreelistType: bbolt.FreelistMapType,
			},
			MsgpackUseNewTimeFormat: true,
		})
		return err
	})
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, drover.Errorf(drover.Conflict, "the raft log %s is in use by another process", path)
	case errors.Is(err, errPanicked) || errors.Is(err, bolterrors.ErrInvalid) || errors.Is(err, bolterrors.ErrChecksum) ||
		errors.Is(err, bolterrors.ErrVersionMismatch):
		return nil, drover.Errorf(drover.Invalid, "the raft log %s is damaged: %w", path, err)
	case err != nil:
		return nil, fmt.Errorf("opening the raft log %s: %w", path, err)
	}
	return store, nil
}

var errPanicked = errors.New("unreadable")

// guarded turns the panics and faults of libraries that read damaged files into errors.
func guarded(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", errPanicked, r)
		}
	}()
	return f()
}
