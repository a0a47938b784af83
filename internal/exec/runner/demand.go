package runner

import (
	"cmp"
	"slices"
)

// wanted is how many runners the environment needs beside its pool: a claim that waits is served by a runner that is
// started for it, also where the pool keeps none.
func (e *env) wanted() int { return max(0, e.waiters.Len()+e.serving-e.PoolSize) }

// demandLocked has the demand recorded if it changed.
func (s *Service) demandLocked(e *env) {
	if e.wanted() != e.demand {
		signal(s.toWrite)
	}
}

// settleLocked ends the time in which a served waiter counts as one that waits.
func (s *Service) settleLocked(r *runner) {
	if r.served {
		r.served = false
		r.counts.serving--
	}
	if r.handed {
		r.handed = false
		r.counts.handing--
	}
	if r.counts != nil {
		s.demandLocked(r.counts)
	}
}

// demandsLocked returns what changed of all environments' demands, and takes it as recorded.
func (s *Service) demandsLocked() (changed []Demand) {
	for id, e := range s.envs {
		want := e.wanted()
		if want < e.demand && e.handing > 0 {
			continue // a pool that shrinks could lose the one that is being handed out
		}
		if want != e.demand {
			changed = append(changed, Demand{Environment: id, Runners: want})
			e.demand = want
		}
	}
	slices.SortFunc(changed, func(a, b Demand) int { return cmp.Compare(a.Environment, b.Environment) })
	return changed
}

// forgetDemandsLocked has demands recorded again that could not be.
func (s *Service) forgetDemandsLocked(demands []Demand) {
	for _, d := range demands {
		if e := s.envs[d.Environment]; e != nil {
			e.demand = -1
		}
	}
}
