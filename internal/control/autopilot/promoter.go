package autopilot

import (
	"cmp"
	"slices"

	"github.com/hashicorp/raft"
	library "github.com/hashicorp/raft-autopilot"
)

// promoter decides who votes: every server that is stable, except read replicas; with redundancy zones one server of each zone,
// and every server that has none.
type promoter struct {
	library.StablePromoter
	servers func() map[raft.ServerID]Known
}

// readReplica is the type of a server that never votes.
const readReplica library.NodeType = "read-replica"

// GetNodeTypes implements library.Promoter.
func (p *promoter) GetNodeTypes(_ *library.Config, s *library.State) map[raft.ServerID]library.NodeType {
	known, out := p.servers(), map[raft.ServerID]library.NodeType{}
	for id := range s.Servers {
		out[id] = library.NodeVoter
		if known[id].ReadReplica {
			out[id] = readReplica
		}
	}
	return out
}

// CalculatePromotionsAndDemotions implements library.Promoter. Who is to vote stays who votes already and is healthy, so that
// servers do not take turns.
func (p *promoter) CalculatePromotionsAndDemotions(c *library.Config, s *library.State) (out library.RaftChanges) {
	known := p.servers()
	stable := map[raft.ServerID]bool{}
	for _, id := range p.StablePromoter.CalculatePromotionsAndDemotions(c, s).Promotions { // of those that do not vote
		stable[id] = true
	}
	zones := map[string][]raft.ServerID{}
	for id, one := range s.Servers {
		zone := known[id].Zone
		switch byZone, _ := c.Ext.(bool); {
		case known[id].ReadReplica:
			if one.HasVotingRights() {
				out.Demotions = append(out.Demotions, id)
			}
		case byZone && zone != "":
			zones[zone] = append(zones[zone], id)
		case stable[id]:
			out.Promotions = append(out.Promotions, id)
		}
	}
	for _, ids := range zones {
		p.zone(ids, s, stable, &out)
	}
	slices.Sort(out.Promotions)
	slices.Sort(out.Demotions)
	return out
}

// zone chooses the voter of a zone: a healthy one that votes, the leader before others, else one that is stable. The others of
// the zone lose their votes once the zone has a healthy voter.
func (p *promoter) zone(ids []raft.ServerID, s *library.State, stable map[raft.ServerID]bool, out *library.RaftChanges) {
	rank := func(id raft.ServerID) int {
		one := s.Servers[id]
		switch {
		case id == s.Leader:
			return 0
		case one.HasVotingRights() && one.Health.Healthy:
			return 1
		case stable[id]:
			return 2
		}
		return 3
	}
	slices.SortFunc(ids, func(a, b raft.ServerID) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b)) })
	first := ids[0]
	switch rank(first) {
	case 2:
		out.Promotions = append(out.Promotions, first)
		return // who voted is demoted once the new one does
	case 3:
		return // nobody is better
	}
	for _, id := range ids[1:] {
		if s.Servers[id].HasVotingRights() {
			out.Demotions = append(out.Demotions, id)
		}
	}
}
