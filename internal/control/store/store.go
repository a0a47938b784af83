package store

import (
	"sync"
	"sync/atomic"

	"github.com/hashicorp/go-memdb"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/quota"
)

// Store is the state. All methods may be called by several goroutines at once.
type Store struct {
	current atomic.Pointer[Snapshot]
	writing sync.Mutex // held by the open Txn
	watches watches
}

// New returns a store with the namespace "default", the node pools "default" and "all", and the default scheduler
// configuration, all at index 0.
func New() *Store {
	s := &Store{}
	s.watches.chans = map[watchKey]chan struct{}{}
	s.current.Store(empty())
	t := s.Begin(0)
	t.putBuiltins()
	t.Commit()
	return s
}

func empty() *Snapshot {
	db, err := memdb.NewMemDB(schema())
	if err != nil {
		panic(err) // the schema is a constant
	}
	return &Snapshot{reader{db: db, txn: db.Txn(false), tables: map[string]uint64{}}}
}

// Snapshot returns the state after the last commit. It is cheap; the snapshot is valid for ever and never changes.
func (s *Store) Snapshot() *Snapshot { return s.current.Load() }

// Index returns the raft index of the last commit.
func (s *Store) Index() uint64 { return s.Snapshot().Index() }

// Begin opens the one write transaction, for the entry at index. End it with Commit or Abort.
func (s *Store) Begin(index uint64) *Txn {
	s.writing.Lock()
	return s.begin(index, s.Snapshot())
}

// BeginRestore opens a write transaction on an empty state that replaces the present one when it is committed.
func (s *Store) BeginRestore(index uint64) *Txn {
	s.writing.Lock()
	t := s.begin(index, empty())
	t.restoring = true
	return t
}

func (s *Store) begin(index uint64, base *Snapshot) *Txn {
	tables := make(map[string]uint64, len(base.tables)+1)
	for k, v := range base.tables {
		tables[k] = v
	}
	return &Txn{
		reader: reader{
			db: base.db, txn: base.db.Txn(true), allocs: base.allocs.fork(), index: index, tables: tables, executions: base.executions,
		},
		store: s, jobs: map[drover.NamespacedID]*JobRow{}, usage: map[string]*usageRow{},
		tenants: map[string]*quota.Use{}, requotaed: map[string]struct{}{}, touched: map[watchKey]struct{}{},
	}
}

// Snapshot is a consistent view of the state at one index.
type Snapshot struct{ reader }

type reader struct {
	db     *memdb.MemDB
	txn    *memdb.Txn
	allocs allocSet
	index  uint64
	tables map[string]uint64

	executions ExecutionTotals
}

// Index returns the index of the last applied entry.
func (r *reader) Index() uint64 { return r.index }

// History is what all snapshots of one store have in common until it is restored. Who caches by the indexes of tables compares it, too:
// a restored state may have the same indexes and other rows.
type History struct{ db *memdb.MemDB }

// History returns that of the snapshot.
func (r *reader) History() History { return History{r.db} }

// TableIndex returns the index of the table's last change; 0 = untouched. The name may also be one of the Watch
// constants' tables.
func (r *reader) TableIndex(table string) uint64 { return r.tables[table] }
