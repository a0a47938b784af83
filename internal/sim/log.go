package sim

import (
	"bytes"
	"context"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/fsm"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/exec/runner"
	"github.com/drover-project/drover/internal/sim/virtual"
)

// disk is what survives the server's process: the log with the snapshot it starts from, and the journal of claims.
type disk struct {
	first    []entry  // the whole log, also what the snapshot has
	snapshot []byte   // nil = none
	index    uint64   // of the snapshot
	lost     [32]byte // hash of the state of the process that was killed last
	lostAt   uint64   // and its index; 0 = none was
	journal  []runner.Line
	logged   uint64 // of several servers: its log has the entries up to this index
	term     uint64 // the newest that it knows. A former leader that stood still learns of it also from a server that has begun anew
}

// entry is a command of the log, encoded as raft has it.
type entry struct {
	index uint64
	data  []byte
}

// proposal is an entry on its way.
type proposal struct {
	data    []byte
	due     time.Time // of its commit
	reached uint64    // the servers that have it in their logs, as bits
	by      *server
	at      time.Time
	asks    *virtual.Proc
	index   uint64
	value   any
	err     error
	done    bool
}

// Propose implements the Log interfaces of control: that of a server which is alone, or of all of them.
func (s *server) Propose(ctx context.Context, c command.Command) (uint64, any, error) {
	if s.w.quorum != nil {
		return s.proposeToLeader(ctx, c)
	}
	return ownLog{s}.Propose(ctx, c)
}

// ownLog is the server's own log, which takes entries while the server leads.
type ownLog struct{ s *server }

// Propose is raft's contract: in order, later, and if leadership or the process is lost meanwhile nobody is told what became of it.
func (l ownLog) Propose(_ context.Context, c command.Command) (uint64, any, error) {
	s := l.s
	data, err := command.Encode(c)
	if err != nil {
		return 0, nil, err
	}
	switch {
	case s.process.Over || !s.accepts:
		return 0, nil, drover.Errorf(drover.NotLeader, "this server does not lead")
	case s.w.full:
		return 0, nil, drover.Errorf(drover.Exhausted, "no space left on device")
	}
	p := &proposal{data: data, asks: s.w.Current}
	s.flying = append(s.flying, p)
	at := s.w.Now.Add(s.w.Between(200*time.Microsecond, 20*time.Millisecond))
	if !at.After(s.lastCommit) {
		at = s.lastCommit.Add(time.Microsecond)
	}
	s.lastCommit = at
	if s.w.quorum != nil {
		s.w.quorum.propose(s, p, at)
	} else {
		s.w.At(at, c.Kind().String(), func() { s.commit(p) })
	}
	for !p.done {
		p.asks.Park()
	}
	return p.index, p.value, p.err
}

// commit applies the entry unless it was lost.
func (s *server) commit(p *proposal) {
	if p.done || len(s.flying) == 0 || s.flying[0] != p {
		return
	}
	s.flying = s.flying[1:]
	p.index, p.value, p.err = s.append(p.data)
	if s.w.lossy && s.w.Chance(10) {
		p.err = drover.Errorf(drover.Unavailable, "the answer was lost")
	}
	p.done = true
	p.asks.WakeAfter(s.w.Between(0, time.Millisecond))
}

// append puts an entry into the log and applies it.
func (s *server) append(data []byte) (uint64, any, error) {
	d := s.disk
	index := s.store.Index() + 1
	if s.w.Rng.IntN(64) == 0 {
		s.compact()
	}
	if s.skip {
		index, s.skip = index+1, false // raft's own entry at the beginning of a term
	}
	d.first = append(d.first, entry{index, data})
	value, err := s.fsm.Apply(index, data)
	s.w.checkEntry(s.store.Snapshot(), index)
	return index, value, err
}

// lose decides what becomes of the entries in flight: some were committed, the rest never is. Who asked is not told.
func (s *server) lose() (committed [][]byte) {
	n := s.w.Rng.IntN(len(s.flying) + 1)
	for i, p := range s.flying {
		if i < n {
			committed = append(committed, p.data)
		}
		p.done, p.err = true, drover.Errorf(drover.Unavailable, "leadership was lost; the entry may be committed or not")
		p.asks.WakeAfter(s.w.Between(0, time.Second))
	}
	s.flying = nil
	return committed
}

// compact writes a snapshot now and then, as raft does.
func (s *server) compact() {
	var b bytes.Buffer
	if err := s.fsm.Snapshot(&b); err != nil {
		s.w.Breach("cannot write a snapshot: %v", err)
	}
	s.disk.snapshot, s.disk.index = b.Bytes(), s.store.Index()
}

// load rebuilds the state from the disk, and proves that it is the one that was lost.
func (w *World) load(s *server) (*store.Store, *fsm.FSM) {
	d, st := s.disk, store.New()
	f := fsm.New(st, s)
	if d.snapshot != nil {
		if err := f.Restore(bytes.NewReader(d.snapshot)); err != nil {
			w.Breach("cannot restore a snapshot: %v", err)
		}
	}
	if w.quorum != nil {
		return st, f // the entries come from the leader
	}
	proven := d.lostAt == 0 || st.Index() > d.lostAt
	prove := func() {
		if !proven && f.Hash() != d.lost {
			w.Breach("the snapshot of %d and the entries up to %d give another state than the one that was lost", d.index, d.lostAt)
		}
		proven = true
	}
	for _, e := range d.first {
		if e.index <= d.index {
			continue
		}
		if e.index > d.lostAt {
			prove()
		}
		_, _ = f.Apply(e.index, e.data) // its errors are the proposer's
	}
	prove()
	return st, f
}

// replay proves that the whole log, from its beginning, gives the state too.
func (w *World) replay() {
	f := fsm.New(store.New(), nil)
	for _, e := range w.entries() {
		_, _ = f.Apply(e.index, e.data) // its errors are the proposer's
	}
	if f.Hash() != w.truth().Hash() {
		w.Breach("the whole log gives another state than the server has, which restored snapshots")
	}
}

// entries are those of the whole log.
func (w *World) entries() []entry {
	if w.quorum != nil {
		return w.quorum.entries
	}
	return w.disks[0].first
}

// truth is the state that has every entry.
func (w *World) truth() *fsm.FSM {
	if w.quorum != nil {
		return w.quorum.head
	}
	return w.servers[0].fsm
}
