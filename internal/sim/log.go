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
)

// disk is what survives the server's process: the log with the snapshot it starts from, and the journal of claims.
type disk struct {
	first    []entry  // the whole log, also what the snapshot has
	snapshot []byte   // nil = none
	index    uint64   // of the snapshot
	lost     [32]byte // hash of the state of the process that was killed last
	lostAt   uint64   // and its index; 0 = none was
	journal  []runner.Line
}

// entry is a command of the log, encoded as raft has it.
type entry struct {
	index uint64
	data  []byte
}

// proposal is an entry on its way.
type proposal struct {
	data  []byte
	asks  *proc
	index uint64
	value any
	err   error
	done  bool
}

// Propose implements the Log interfaces of control. It is raft's contract: in order, later, and if leadership or the
// process is lost meanwhile nobody is told what became of it.
func (s *server) Propose(_ context.Context, c command.Command) (uint64, any, error) {
	data, err := command.Encode(c)
	if err != nil {
		return 0, nil, err
	}
	switch {
	case s.process.over || !s.accepts:
		return 0, nil, drover.Errorf(drover.NotLeader, "this server does not lead")
	case s.w.full:
		return 0, nil, drover.Errorf(drover.Exhausted, "no space left on device")
	}
	p := &proposal{data: data, asks: s.w.current}
	s.flying = append(s.flying, p)
	at := s.w.now.Add(s.w.between(200*time.Microsecond, 20*time.Millisecond))
	if !at.After(s.lastCommit) {
		at = s.lastCommit.Add(time.Microsecond)
	}
	s.lastCommit = at
	s.w.at(at, c.Kind().String(), func() { s.commit(p) })
	for !p.done {
		p.asks.park()
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
	if s.w.lossy && s.w.chance(10) {
		p.err = drover.Errorf(drover.Unavailable, "the answer was lost")
	}
	p.done = true
	p.asks.wakeAfter(s.w.between(0, time.Millisecond))
}

// append puts an entry into the log and applies it.
func (s *server) append(data []byte) (uint64, any, error) {
	d := s.w.disk
	index := s.store.Index() + 1
	if s.w.rng.IntN(64) == 0 {
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
	n := s.w.rng.IntN(len(s.flying) + 1)
	for i, p := range s.flying {
		if i < n {
			committed = append(committed, p.data)
		}
		p.done, p.err = true, drover.Errorf(drover.Unavailable, "leadership was lost; the entry may be committed or not")
		p.asks.wakeAfter(s.w.between(0, time.Second))
	}
	s.flying = nil
	return committed
}

// compact writes a snapshot now and then, as raft does.
func (s *server) compact() {
	var b bytes.Buffer
	if err := s.fsm.Snapshot(&b); err != nil {
		s.w.breach("cannot write a snapshot: %v", err)
	}
	s.w.disk.snapshot, s.w.disk.index = b.Bytes(), s.store.Index()
}

// load rebuilds the state from the disk, and proves that it is the one that was lost.
func (w *World) load(observer fsm.Observer) (*store.Store, *fsm.FSM) {
	d, st := w.disk, store.New()
	f := fsm.New(st, observer)
	if d.snapshot != nil {
		if err := f.Restore(bytes.NewReader(d.snapshot)); err != nil {
			w.breach("cannot restore a snapshot: %v", err)
		}
	}
	proven := d.lostAt == 0 || st.Index() > d.lostAt
	prove := func() {
		if !proven && f.Hash() != d.lost {
			w.breach("the snapshot of %d and the entries up to %d give another state than the one that was lost", d.index, d.lostAt)
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
	for _, e := range w.disk.first {
		_, _ = f.Apply(e.index, e.data) // its errors are the proposer's
	}
	if f.Hash() != w.server.fsm.Hash() {
		w.breach("the whole log gives another state than the server has, which restored snapshots")
	}
}
