package runner

import "github.com/drover-project/drover/internal/quota"

// seat is a claim that a quota bounds, until it is answered.
type seat struct{ quota, allocID string }

// admit refuses a claim that would be beyond the quota of its namespace, with those that were not answered yet. The state machine decides
// in the end, where several servers hand out runners of one namespace; but a runner that it refuses was handed out, and is lost. The seat
// is nil where nothing is bounded. Errors: Exhausted.
func (s *Service) admit(namespace string) (*seat, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	snap := s.deps.Snapshot() // under the lock: whoever left a seat is in it
	account := quota.AccountOf(snap, namespace)
	if !account.BoundsRunners() {
		return nil, nil
	}
	for other := range s.seats {
		if a := snap.Allocation(other.allocID); other.quota == account.Quota && (a == nil || a.Claim == nil) {
			account.Add("", quota.Amount{Runners: 1})
		}
	}
	if err := account.Refusal("", quota.Amount{Runners: 1}); err != nil {
		return nil, err
	}
	x := &seat{quota: account.Quota}
	s.seats[x] = struct{}{}
	return x, nil
}

// sit says which runner a bounded claim got, and has the claim recorded before it is answered.
func (s *Service) sit(x *seat, h *Handout) {
	if x == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	x.allocID, h.Line.Bounded = h.Line.AllocID, true
}

// leaveSeat says that the claim was answered.
func (s *Service) leaveSeat(x *seat) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.seats, x)
}
