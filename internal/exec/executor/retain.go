package executor

import (
	"slices"
	"time"
)

// retire keeps an ended execution for late readers, within bounds.
func (s *Executor) retire(x *Execution) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = append(s.ended, x)
	s.perEnv[x.runner.Key()]++
	s.bytes += x.kept()
	for s.perEnv[x.runner.Key()] > s.cfg.RetainCount {
		i := slices.IndexFunc(s.ended, func(e *Execution) bool { return e.runner.Key() == x.runner.Key() })
		s.dropLocked(i)
	}
	s.boundLocked()
	s.expireLocked()
}

// boundLocked drops the oldest while they have too many bytes together.
func (s *Executor) boundLocked() {
	for s.bytes > s.cfg.RetainBytes && len(s.ended) > 1 {
		s.dropLocked(0)
	}
}

// expireLocked drops what was kept long enough. It runs on entry, so no timer is needed.
func (s *Executor) expireLocked() {
	now := s.deps.Clock.Now()
	for len(s.ended) > 0 && now.Sub(s.ended[0].endedAt) >= s.cfg.Retain {
		s.dropLocked(0)
	}
	if len(s.prepared) == 0 || now.Sub(s.swept) < sweepEvery {
		return
	}
	s.swept = now
	for key, p := range s.prepared {
		if s.staleLocked(p, now) {
			s.unprepareLocked(key, p)
		}
	}
}

// sweepEvery is how often the prepared executions are walked over: there may be many.
const sweepEvery = time.Second

// staleLocked reports whether a prepared execution waited too long to be started.
func (s *Executor) staleLocked(p prepared, now time.Time) bool {
	return now.Sub(p.at) >= s.cfg.PreparedTime
}

// dropLocked forgets the ended execution at index i. Readers that are attached keep it, and read on. The ledger
// forgets it too, unless its webhook is still to be told.
func (s *Executor) dropLocked(i int) {
	x := s.ended[i]
	s.ended = slices.Delete(s.ended, i, i+1)
	delete(s.byID, x.id)
	s.ledger.Drop(x.id)
	s.bytes -= x.kept()
	if env := x.runner.Key(); s.perEnv[env] > 1 {
		s.perEnv[env]--
	} else {
		delete(s.perEnv, env)
	}
}

// kept is how many bytes of output are kept. After the end this changes only when fill says so, so that retire and dropLocked count
// alike.
func (x *Execution) kept() int64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.journal.Bytes()
}
