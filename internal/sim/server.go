package sim

import (
	"context"
	"strconv"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/assignment"
	"github.com/drover-project/drover/internal/control/fsm"
	"github.com/drover-project/drover/internal/control/intake"
	"github.com/drover-project/drover/internal/control/leader"
	"github.com/drover-project/drover/internal/control/scheduler"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/sim/settled"
	"github.com/drover-project/drover/internal/sim/virtual"
)

const (
	retryDelay = time.Second
	workers    = 4
)

// server is one life of the server's process.
type server struct {
	w       *World
	number  int
	host    *virtual.Host // nil for a server that is alone
	disk    *disk
	process *virtual.Scope
	term    *virtual.Scope // of the present leadership
	accepts bool           // the log takes entries: it leads, as far as it knows
	member  member         // what it is in a quorum
	ctx     context.Context
	cancel  context.CancelFunc

	store      *store.Store
	fsm        *fsm.FSM
	flying     []*proposal
	lastCommit time.Time
	skip       bool

	intake  *intake.Intake
	control *assignment.Controller
	leader  *leader.Leader // of the newest term; nil while the log is replayed
	runners *runners       // nil while there is no execution service
	lessee  lessee         // what it is among others that hand out runners
}

// boot starts a process on its disk.
func (w *World) boot(number int) {
	s := &server{w: w, number: number, disk: w.disks[number], skip: true}
	s.lessee.held, s.lessee.wants = map[string]held{}, map[string]bool{}
	if w.quorum != nil {
		s.host = virtual.NewHost(w.World, w.steps[number], 0.05*(2*w.Rng.Float64()-1)) // its clock was set meanwhile, and goes a little wrong
	}
	s.process = &virtual.Scope{W: w.World, Host: s.host}
	s.ctx, s.cancel = context.WithCancel(w.ctx)
	s.store, s.fsm = w.load(s)
	clock := virtual.Clock{W: w.World, Scope: s.process}
	s.intake = intake.New(intake.Deps{Log: s, Store: s.store, Clock: clock, IDs: w.ids, Collect: s.collect})
	s.control = assignment.New(assignment.Deps{
		Log: ownLog{s}, Store: s.store, Leader: s, Clock: clock, IDs: w.ids, Logger: w.log, Several: w.quorum != nil, Touch: s.touch,
	})
	w.servers[number] = s
	w.Say("%s up at index %d", s, s.store.Index())
	if w.quorum != nil {
		s.join()
		return
	}
	s.runners = newRunners(s, s.process, 0)
	s.lead()
}

// String names the server.
func (s *server) String() string {
	if s.w.quorum == nil {
		return "server"
	}
	return "s" + strconv.Itoa(s.number)
}

// crash kills the process.
func (w *World) crash(s *server) {
	if s.process.Over {
		return
	}
	w.Say("%s killed at index %d", s, s.store.Index())
	before := s.fsm.Hash()
	s.unlead()
	if w.quorum != nil {
		w.trouble(s.number, time.Minute) // a trap may have waited for long
		w.quorum.lost(s)
	} else {
		for i, data := range s.lose() {
			s.disk.first = append(s.disk.first, entry{s.store.Index() + 1 + uint64(i), data})
		}
	}
	if s.lessee.life != nil {
		s.lessee.life.End()
	}
	s.process.End()
	s.cancel() // connections break
	s.disk.lostAt, s.disk.lost = s.store.Index(), before
	w.checkAcked()
}

// lead begins a term.
func (s *server) lead() {
	s.accepts, s.skip = true, true
	s.term = &virtual.Scope{W: s.w.World, Host: s.host}
	s.leader = leader.New(leader.Config{
		Workers: workers, Schedulers: workers, FailoverTTL: s.failoverTTL(),
		GC: leader.GCConfig{
			Interval: 2 * time.Minute, Evals: time.Minute, Jobs: 2 * time.Minute, Nodes: time.Hour, Deployments: time.Minute, Runners: 10,
		},
	}, leader.Deps{
		Store: s.store, Clock: virtual.Clock{W: s.w.World, Scope: s.term}, IDs: s.w.ids, Logger: s.w.log,
		Schedule: s.schedule, Withhold: s.withhold,
		Launch: func(ctx context.Context, namespace, jobID string, at time.Time) error {
			_, err := s.intake.LaunchPeriodic(ctx, namespace, jobID, at)
			return err
		},
	})
	s.term.Spawn("lead", func(p *virtual.Proc) {
		p.Sleep(s.w.Between(0, 100*time.Millisecond))
		if s.w.quorum != nil {
			for s.w.quorum.found(s) != nil {
				p.Sleep(retryDelay)
			}
		}
		loops, err := s.leader.Begin(s.ctx, ownLog{s})
		for err != nil {
			p.Sleep(retryDelay)
			loops, err = s.leader.Begin(s.ctx, ownLog{s})
		}
		s.w.Say("leading at index %d", s.store.Index())
		for _, loop := range loops {
			s.term.Spawn("leader", func(*virtual.Proc) { loop(s.ctx) })
		}
		if s.w.quorum != nil {
			s.term.Spawn("lessees", s.watchLessees)
		}
	})
}

// unlead ends the term's loops where they wait.
func (s *server) unlead() {
	s.accepts = false
	if s.term == nil {
		return // it never led
	}
	s.term.End()
	s.leader.End()
}

// loseLeadership ends the term; what was committed of the entries in flight is applied before the next one.
func (s *server) loseLeadership() {
	if s.process.Over || !s.accepts {
		return
	}
	s.w.Say("leadership lost")
	s.unlead()
	for _, data := range s.lose() {
		_, _, _ = s.append(data)
	}
}

// schedule is the scheduler, on a machine where that takes time, in which the state goes on.
func (s *server) schedule(in scheduler.Input) scheduler.Output {
	if s.w.stuck && s.w.Chance(5) {
		s.w.Say("a worker is stuck with evaluation %s", virtual.Short(in.Eval.ID))
		s.w.Current.Sleep(70 * time.Second) // longer than the nack timeout: somebody else gets it too
	}
	s.w.Current.Sleep(s.w.Between(100*time.Microsecond, 30*time.Millisecond))
	out, why := s.w.extra.Schedule(in)
	if why != "" {
		s.w.Breach("evaluation %s of %s (%s): %s", virtual.Short(in.Eval.ID), in.Eval.JobID, in.Eval.TriggeredBy, why)
	}
	s.w.Say("evaluation %s of %s (%s) on state %d: %s", virtual.Short(in.Eval.ID), in.Eval.JobID, in.Eval.TriggeredBy, in.Snapshot.Index(),
		settled.PlanText(out.Plan))
	return out
}

// withhold is leader.Deps.Withhold, as the agent gives it to the leader in the product.
func (s *server) withhold(_ context.Context, allocIDs []string) (leases []uint64, giveBack func(settled bool), err error) {
	if s.w.quorum != nil {
		return s.withholdAll(allocIDs)
	}
	own := s.runners.withhold(allocIDs)
	return []uint64{0}, func(bool) { own() }, nil
}

// collect is intake.Deps.Collect.
func (s *server) collect(ctx context.Context) error {
	if s.leader == nil {
		return drover.Errorf(drover.NotLeader, "this server does not lead")
	}
	return s.leader.CollectGarbage(ctx)
}

// Leading implements assignment.Leader.
func (s *server) Leading() bool { return s.leader != nil && s.leader.Leading() }

// Heartbeat implements assignment.Leader.
func (s *server) Heartbeat(nodeID string) time.Duration {
	s.member.heard(nodeID, s.w.Now)
	return s.leader.Heartbeat(nodeID)
}

// Events implements fsm.Observer.
func (s *server) Events(ev drover.Events) {
	if s.w.quorum == nil {
		s.w.checkEvents(ev)
	}
	s.runners.follow(ev)
}

// EvaluationsChanged implements fsm.Observer.
func (s *server) EvaluationsChanged(index uint64, evals []*drover.Evaluation) {
	if s.leader != nil {
		s.leader.EvaluationsChanged(index, evals)
	}
}

// CapacityFreed implements fsm.Observer.
func (s *server) CapacityFreed(index uint64, nodeID, class string) {
	if s.leader != nil {
		s.leader.CapacityFreed(index, nodeID, class)
	}
}

// NodeChanged implements fsm.Observer.
func (s *server) NodeChanged(index uint64, nodeID string, n *drover.Node) {
	if s.leader != nil {
		s.leader.NodeChanged(index, nodeID, n)
	}
}

// JobChanged implements fsm.Observer.
func (s *server) JobChanged(index uint64, key drover.NamespacedID, j *drover.Job) {
	if s.leader != nil {
		s.leader.JobChanged(index, key, j)
	}
}
