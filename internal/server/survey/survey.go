package survey

import (
	"context"
	"sync"
	"time"

	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/members"
	"github.com/drover-project/drover/internal/httpapi/nomad/agent"
	"github.com/drover-project/drover/internal/peercall"
	"github.com/drover-project/drover/internal/server/auditing"
	"github.com/drover-project/drover/internal/server/servers"
)

// Procedures that servers answer.
const (
	procCheckup = "Agent.Checkup"
	procAudit   = "Agent.Audit"
)

// patience is how long a server may take to say how it is, or to read its record.
const patience = 10 * time.Second

// Servers are this server and the others; *servers.Servers is one.
type Servers interface {
	Self() servers.Server
	Members() []members.Member // of all regions
	Client() *peercall.Client
	Mux() *peercall.Mux
}

// Deps is what a Survey needs.
type Deps struct {
	Servers Servers
	Raft    func() agent.RaftConfiguration                     // who is a server by the log
	Checkup func() (cluster.Checkup, error)                    // how this server is
	Record  func(auditing.Question) (cluster.AuditPart, error) // what this server recorded
	Clock   clock.Clock
}

// Survey asks servers, and answers those that ask.
type Survey struct{ deps Deps }

// New lets other servers ask this one.
func New(d Deps) *Survey {
	peercall.Handle(d.Servers.Mux(), procCheckup, func(context.Context, string, struct{}) (cluster.Checkup, error) { return d.Checkup() })
	peercall.Handle(d.Servers.Mux(), procAudit, func(_ context.Context, _ string, asked auditing.Question) (cluster.AuditPart, error) {
		return d.Record(asked)
	})
	return &Survey{d}
}

// Examine asks how all servers are, and says what that means.
func (s *Survey) Examine(ctx context.Context) cluster.Examination {
	all := s.servers()
	list := make([]cluster.Seen, len(all))
	var asked sync.WaitGroup
	for i, one := range all {
		list[i] = one.Seen
		if one.answers() {
			asked.Go(func() { s.askCheckup(ctx, &list[i], one) }) // ends within patience
		}
	}
	asked.Wait()
	findings := cluster.Diagnose(list, s.deps.Clock.Now())
	return cluster.Examination{State: cluster.Worst(findings), Findings: findings}
}

// Audit asks all servers what they recorded, of a page that is not the first those that have more. Errors: Invalid for the page's token;
// ctx's.
func (s *Survey) Audit(ctx context.Context, q cluster.AuditQuery) (cluster.AuditRecords, error) {
	places, err := cluster.ParseAuditPlaces(q.NextToken)
	if err != nil {
		return cluster.AuditRecords{}, err
	}
	var parts []cluster.AuditPart
	var wanted []server
	for _, one := range s.servers() {
		if _, more := places[one.Name]; places == nil || more {
			parts, wanted = append(parts, cluster.AuditPart{Server: one.Name, Problem: one.Problem}), append(wanted, one)
		}
	}
	var asked sync.WaitGroup
	for i, one := range wanted {
		if one.answers() {
			asked.Go(func() { s.askRecord(ctx, &parts[i], one, auditing.Question{Query: q, Before: places[one.Name]}) }) // ends within patience
		}
	}
	asked.Wait()
	return cluster.JoinAudit(parts, q.PerPage), ctx.Err()
}

// server is one with where it is asked.
type server struct {
	cluster.Seen
	id, address string
}

// answers reports whether it is of use to ask.
func (s server) answers() bool { return s.Problem == "" && s.Status != string(members.Left) }

// servers are those of this region that gossip or the log knows.
func (s *Survey) servers() (out []server) {
	log, self := s.deps.Raft().Servers, s.deps.Servers.Self()
	votes, unseen := map[string]bool{}, map[string]bool{}
	for _, one := range log {
		votes[one.ID], unseen[one.ID] = one.Voter, true
	}
	for _, m := range s.deps.Servers.Members() {
		if m.Region == self.Region {
			seen := cluster.Seen{Name: m.FullName(), Status: string(m.Status), Voter: votes[m.ID]}
			out = append(out, server{seen, m.ID, m.RPCAddr})
			delete(unseen, m.ID)
		}
	}
	for _, one := range log {
		if unseen[one.ID] {
			out = append(out, server{Seen: cluster.Seen{Name: one.Node, Voter: one.Voter, Problem: "gossip knows nothing of it"}})
		}
	}
	return out
}

// askCheckup has a server examine itself.
func (s *Survey) askCheckup(ctx context.Context, seen *cluster.Seen, of server) {
	seen.Sent = s.deps.Clock.Now()
	said, err := ask(ctx, s, of, procCheckup, struct{}{}, func(struct{}) (cluster.Checkup, error) { return s.deps.Checkup() })
	seen.Received = s.deps.Clock.Now()
	if err != nil {
		seen.Problem = err.Error()
		return
	}
	seen.Checkup = &said
}

// askRecord has a server read its record.
func (s *Survey) askRecord(ctx context.Context, part *cluster.AuditPart, of server, asked auditing.Question) {
	said, err := ask(ctx, s, of, procAudit, asked, s.deps.Record)
	if err != nil {
		said = cluster.AuditPart{Problem: err.Error()}
	}
	said.Server = part.Server
	for i := range said.Records {
		said.Records[i].Server = part.Server
	}
	*part = said
}

// ask asks a server, which may be this one.
func ask[In, Out any](ctx context.Context, s *Survey, of server, procedure string, in In, here func(In) (Out, error)) (Out, error) {
	if of.id == s.deps.Servers.Self().ID {
		return here(in)
	}
	ctx, cancel := s.deps.Clock.WithTimeout(ctx, patience)
	defer cancel()
	return peercall.Call[Out](ctx, s.deps.Servers.Client(), of.address, procedure, in)
}
