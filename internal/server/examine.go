package server

import (
	"context"
	"sync"
	"time"

	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/control/members"
	"github.com/drover-project/drover/internal/peercall"
)

// procCheckup asks a server how it is.
const procCheckup = "Agent.Checkup"

// checkupPatience is how long a server may take to say how it is.
const checkupPatience = 10 * time.Second

// examination lets other servers ask this one how it is, and returns what asks all servers of the region, and says what that means. It
// needs no leader: one that there is not is what it finds.
func (a *Agent) examination() func(ctx context.Context) cluster.Examination {
	peercall.Handle(a.control.servers.Mux(), procCheckup, func(context.Context, string, struct{}) (cluster.Checkup, error) {
		return a.info().Checkup()
	})
	return func(ctx context.Context) cluster.Examination {
		seen := a.seenServers()
		list := make([]cluster.Seen, len(seen))
		var asked sync.WaitGroup
		for i, s := range seen {
			list[i] = s.Seen
			if s.Problem == "" && s.Status != string(members.Left) {
				asked.Go(func() { a.askServer(ctx, &list[i], s.id, s.address) }) // ends within checkupPatience
			}
		}
		asked.Wait()
		findings := cluster.Diagnose(list, a.deps.Clock.Now())
		return cluster.Examination{State: cluster.Worst(findings), Findings: findings}
	}
}

// seenServer is a server with where it is asked.
type seenServer struct {
	cluster.Seen
	id, address string
}

// seenServers are the servers of this region that gossip or the log knows.
func (a *Agent) seenServers() (out []seenServer) {
	operate, self := a.control.servers.Operate(), a.control.servers.Self()
	votes, unseen := map[string]bool{}, map[string]bool{}
	for _, s := range operate.Raft().Servers {
		votes[s.ID], unseen[s.ID] = s.Voter, true
	}
	for _, m := range a.control.servers.Members() {
		if m.Region == self.Region {
			seen := cluster.Seen{Name: m.FullName(), Status: string(m.Status), Voter: votes[m.ID]}
			out = append(out, seenServer{seen, m.ID, m.RPCAddr})
			delete(unseen, m.ID)
		}
	}
	for _, s := range operate.Raft().Servers {
		if unseen[s.ID] {
			out = append(out, seenServer{Seen: cluster.Seen{Name: s.Node, Voter: s.Voter, Problem: "gossip knows nothing of it"}})
		}
	}
	return out
}

// askServer has a server examine itself.
func (a *Agent) askServer(ctx context.Context, s *cluster.Seen, id, address string) {
	ctx, cancel := a.deps.Clock.WithTimeout(ctx, checkupPatience)
	defer cancel()
	var said cluster.Checkup
	var err error
	s.Sent = a.deps.Clock.Now()
	if id == a.control.servers.Self().ID {
		said, err = a.info().Checkup()
	} else {
		said, err = peercall.Call[cluster.Checkup](ctx, a.control.servers.Client(), address, procCheckup, struct{}{})
	}
	s.Received = a.deps.Clock.Now()
	if err != nil {
		s.Problem = err.Error()
		return
	}
	s.Checkup = &said
}
