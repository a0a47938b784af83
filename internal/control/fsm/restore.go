package fsm

import (
	"bytes"
	"io"
	"maps"
	"slices"

	"github.com/klauspost/compress/gzip"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/machines"
	"github.com/drover-project/drover/internal/control/snapshot"
	"github.com/drover-project/drover/internal/control/store"
)

// Image returns the present state. It is cheap.
func (f *FSM) Image() *snapshot.Image { return snapshot.Of(f.store.Snapshot()) }

// Snapshot writes the present state.
func (f *FSM) Snapshot(w io.Writer) error { return f.Image().Write(w) }

// Hash returns a digest of the whole state. The same log gives the same hash, with or without a restore in between.
func (f *FSM) Hash() [32]byte { return f.Image().Hash() }

// Restore replaces the state by a snapshot's. A torn or corrupt one changes nothing.
// Errors: Invalid with what is wrong and where, and those of r.
func (f *FSM) Restore(r io.Reader) error {
	return f.restore(r, nil, func(*entry) {})
}

// restore replaces the state by a snapshot's. at is that of snapshot.Read; then changes the
// state before anybody sees it.
func (f *FSM) restore(r io.Reader, at func(saved uint64) uint64, then func(*entry)) error {
	txn, err := snapshot.Read(r, f.store, at)
	if err != nil {
		return err
	}
	index := txn.Index()
	then(&entry{index: index, kind: command.KindRestoreState, txn: txn})
	f.ahead, f.parts = ahead(txn.Commit()), nil
	if o, ok := f.observer.(RestoreObserver); ok {
		o.Restored(index)
	}
	return nil
}

// parts is a snapshot that comes in several entries.
type parts struct {
	id     string
	data   [][]byte
	others int // entries that came since the last part
}

// maxOthers is how many other entries may come between two parts: the server that sends them died, or gave up and could not say so.
const maxOthers = 4096

// otherEntry drops the parts that came if no more do.
func (f *FSM) otherEntry() {
	if f.parts == nil {
		return
	}
	if f.parts.others++; f.parts.others > maxOthers {
		f.parts = nil
	}
}

// Restoring reports whether a restore is under way. No snapshot may be written then: it would not have the parts that came, and
// the log behind it would be dropped. Only who applies the log may ask.
func (f *FSM) Restoring() bool { return f.parts != nil }

// indexGap is left between the indexes of a snapshot of another log and those that follow: nodes and users of that log have seen
// greater ones than the snapshot's.
const indexGap = 1 << 20

// restoreState takes a part of a snapshot, and replaces the state with the last one.
func (f *FSM) restoreState(index uint64, c *command.RestoreState) error {
	if c.Part == 0 {
		f.parts = &parts{id: c.ID}
	}
	if f.parts == nil || f.parts.id != c.ID || len(f.parts.data) != c.Part {
		f.advance(index)
		return drover.Errorf(drover.Conflict, "the restore was given up: another one began, or another term of office")
	}
	f.parts.data, f.parts.others = append(f.parts.data, c.Data), 0
	if !c.Last {
		f.advance(index)
		return nil
	}
	err := f.replace(index, f.parts, c)
	if err != nil {
		f.parts = nil
		f.advance(index)
	}
	return err
}

// replace replaces the state by the snapshot. The cluster remains what it is, in a later epoch, and so does its fleet. All tables count
// as changed, so that whoever waits for a change hears of it.
func (f *FSM) replace(index uint64, p *parts, c *command.RestoreState) error {
	readers := make([]io.Reader, len(p.data))
	for i, data := range p.data {
		readers[i] = bytes.NewReader(data)
	}
	zip, err := gzip.NewReader(io.MultiReader(readers...))
	if err != nil {
		return drover.Errorf(drover.Invalid, "unpacking the snapshot: %w", err)
	}
	before := f.store.Snapshot()
	log := index - f.ahead
	at := func(saved uint64) uint64 {
		if saved >= index {
			index = saved + indexGap
		}
		return index
	}
	return f.restore(zip, at, func(e *entry) {
		changed := before.TableIndexes()
		maps.Copy(changed, e.txn.TableIndexes())
		for name := range changed {
			changed[name] = index
		}
		e.txn.RestoreTables(changed)
		e.txn.PutCluster(nextCluster(before.Cluster(), e.txn.Cluster(), c, index, log))
		machines.Keep(e.txn, before.FleetIdentity())
		e.endLessees(c.Then.Time)
		e.stopAllocs(&c.Then)
		e.deriveStatuses()
	})
}

// endLessees ends all lives of execution services that a restored state has: none of them goes on. Claimed runners wait for the next.
func (e *entry) endLessees(now int64) {
	var ended []uint64
	for _, l := range slices.Collect(e.txn.Lessees()) {
		ended = append(ended, l.Incarnation)
		e.txn.DeleteLessee(l)
	}
	if len(ended) > 0 {
		e.endLeases(ended, 0, false, now)
		e.sumDemands()
	}
}

// nextCluster is what the servers are together after a restore: what they were, in a later epoch than both states.
func nextCluster(present, restored *cluster.State, c *command.RestoreState, index, log uint64) *cluster.State {
	next := cluster.State{CreateIndex: index}
	if present != nil {
		next = *present
	}
	next.Epoch = max(cluster.NextEpoch(next.Epoch), c.Epoch)
	if restored != nil {
		next.Epoch = max(next.Epoch, cluster.NextEpoch(restored.Epoch))
	}
	next.Version = max(cluster.VersionOf(present), cluster.VersionOf(restored))
	next.Ahead, next.ModifyIndex = index-log, index
	return &next
}

// ahead is how far the state's indexes are ahead of the log's.
func ahead(s *store.Snapshot) uint64 {
	if c := s.Cluster(); c != nil {
		return c.Ahead
	}
	return 0
}
