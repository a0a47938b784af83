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
		s.recordedLocked() // it was taken, or goes back
	}
	if r.handed {
		r.handed = false
		r.counts.handing--
	}
	if r.counts != nil {
		s.demandLocked(r.counts)
	}
}

// demandsLocked returns what changed of all environments' demands, and takes it as recorded with the claims. As long as
// somebody draws from the pool, a demand falls by no more than what is claimed: else the pool would shrink, and of what
// it stops one may be handed out at this moment.
func (s *Service) demandsLocked(claims []AllocClaim) (changed []Demand) {
	claimed := map[string]int{}
	for _, c := range claims {
		id, _, _ := allocOf(c.Claim.RunnerID)
		claimed[id]++
	}
	for id, e := range s.envs {
		want := e.wanted()
		if e.drawn() {
			want = max(want, e.demand-claimed[id])
		}
		if want != e.demand {
			changed = append(changed, Demand{Environment: id, Runners: want})
			e.demand = want
		}
	}
	slices.SortFunc(changed, func(a, b Demand) int { return cmp.Compare(a.Environment, b.Environment) })
	return changed
}

// drawn reports whether somebody is being handed a runner, or waits for one.
func (e *env) drawn() bool { return e.handing+e.serving+e.waiters.Len() > 0 }

// forgetDemandsLocked has demands recorded again that could not be.
func (s *Service) forgetDemandsLocked(demands []Demand) {
	for _, d := range demands {
		if e := s.envs[d.Environment]; e != nil {
			e.demand = -1
		}
	}
}
