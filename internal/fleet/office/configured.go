package office

import (
	"github.com/drover-project/drover/fleet"
)

// Configured returns what is to be stored so that the state has the pools of the configuration: those that are new or changed.
// Those that the configuration has no more retire. What operators paused stays paused.
func Configured(s State, policies []*fleet.Policy) (put []*fleet.Pool) {
	configured := map[string]bool{}
	for _, policy := range policies {
		configured[policy.Name] = true
		next := &fleet.Pool{Name: policy.Name, Policy: policy, Source: fleet.SourceConfig}
		if old := s.FleetPool(policy.Name); old != nil {
			if old.Source == next.Source && !old.Retiring && len(fleet.Differences(old.Policy, policy)) == 0 {
				continue
			}
			next.PauseCreates, next.PauseDestroys, next.PauseReason = old.PauseCreates, old.PauseDestroys, old.PauseReason
		}
		put = append(put, next)
	}
	for old := range s.FleetPools() {
		if old.Source == fleet.SourceConfig && !configured[old.Name] && !old.Retiring {
			next := *old
			next.Retiring = true
			put = append(put, &next)
		}
	}
	return put
}

// Retiring reports that a pool retires.
func Retiring(s State) bool {
	for p := range s.FleetPools() {
		if p.Retiring {
			return true
		}
	}
	return false
}

// Ended returns the pools that retire and have no machine left.
func Ended(s State) (names []string) {
	if !Retiring(s) {
		return nil
	}
	has := map[string]bool{}
	for i := range s.FleetInstances("") {
		has[i.Pool] = has[i.Pool] || i.State != fleet.InstanceGone
	}
	for p := range s.FleetPools() {
		if p.Retiring && !has[p.Name] {
			names = append(names, p.Name)
		}
	}
	return names
}
