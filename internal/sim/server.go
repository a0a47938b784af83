package sim

import (
	"context"
	"slices"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/assignment"
	"github.com/drover-project/drover/internal/control/evalbroker"
	"github.com/drover-project/drover/internal/control/fsm"
	"github.com/drover-project/drover/internal/control/intake"
	"github.com/drover-project/drover/internal/control/leader"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/control/trigger"
	"github.com/drover-project/drover/internal/exec/pool"
)

const (
	heartbeatTTL   = 10 * time.Second
	heartbeatGrace = 10 * time.Second
	retryDelay     = time.Second
	workers        = 4
)

// server is one life of the server's process.
type server struct {
	w       *World
	process *scope
	term    *scope // of the present leadership
	accepts bool   // the log takes entries
	leads   bool

	store      *store.Store
	fsm        *fsm.FSM
	flying     []*proposal
	lastCommit time.Time
	skip       bool

	intake  *intake.Intake
	control *assignment.Controller
	runners *runners

	// Of a term.
	broker   *evalbroker.Broker
	blocked  *evalbroker.Blocked
	ready    signalList
	needless *signal
	waking   bool
	timer    time.Time // for which the broker's next entry is set
	alive    pool.Deadlines
	beats    *signal
	plans    planQueue
	batch    *pushBatch
	pushing  bool
}

// boot starts a process on the world's disk.
func (w *World) boot() {
	s := &server{w: w, process: &scope{w: w}, skip: true}
	s.store, s.fsm = w.load(s)
	s.intake = intake.New(intake.Deps{Log: s, Store: s.store, Clock: simClock{w: w}, IDs: w.ids, Collect: s.collectAll})
	s.control = assignment.New(assignment.Deps{
		Log: s, Store: s.store, Leader: s, Clock: simClock{w: w}, IDs: w.ids, Logger: w.log,
	})
	w.server = s
	w.say("server up at index %d", s.store.Index())
	s.runners = newRunners(s)
	s.lead()
}

// crash kills the process.
func (w *World) crash() {
	s := w.server
	if s.process.over {
		return
	}
	w.say("server killed at index %d", s.store.Index())
	before := s.fsm.Hash()
	s.unlead()
	for i, data := range s.lose() {
		w.disk.first = append(w.disk.first, entry{s.store.Index() + 1 + uint64(i), data})
	}
	s.process.end()
	for _, p := range w.watchers { // connections break
		p.wakeAfter(w.between(0, time.Second))
	}
	w.disk.lostAt, w.disk.lost = s.store.Index(), before
	w.checkAcked()
}

// lead begins a term.
func (s *server) lead() {
	s.accepts = true
	s.term = &scope{w: s.w}
	s.broker, s.blocked = evalbroker.New(evalbroker.Config{}), evalbroker.NewBlocked()
	s.ready, s.needless, s.beats = nil, &signal{}, &signal{}
	s.timer, s.alive, s.plans, s.skip = time.Time{}, pool.Deadlines{}, planQueue{}, true
	s.term.spawn("lead", func(p *proc) {
		p.sleep(s.w.between(0, 100*time.Millisecond))
		s.leads = true
		s.blocked.SetFloor(s.store.Index())
		s.w.say("leading at index %d", s.store.Index())
		s.restore()
		for range workers {
			s.term.spawn("worker", s.work)
		}
		for _, loop := range []func(*proc){
			s.applyPlans, s.cancelNeedless, s.reapFailed, s.watchHeartbeats, s.watchDrains, s.watchDeployments, s.watchSchedulerConfig,
			s.collect,
		} {
			s.term.spawn("loop", loop)
		}
	})
}

// unlead ends the term's loops.
func (s *server) unlead() {
	s.accepts, s.leads = false, false
	s.term.end()
}

// loseLeadership ends the term; what was committed of the entries in flight is applied before the next one.
func (s *server) loseLeadership() {
	if s.process.over || !s.accepts {
		return
	}
	s.w.say("leadership lost")
	s.unlead()
	for _, data := range s.lose() {
		_, _, _ = s.append(data)
	}
}

// Leading implements assignment.Leader.
func (s *server) Leading() bool { return s.leads }

// Heartbeat implements assignment.Leader.
func (s *server) Heartbeat(nodeID string) time.Duration {
	if s.alive.Set(nodeID, s.w.now.Add(heartbeatTTL+heartbeatGrace)) {
		s.beats.raise()
	}
	return heartbeatTTL
}

func (s *server) maker() trigger.Maker { return trigger.Maker{IDs: s.w.ids, Now: s.w.now.UnixNano()} }

func (s *server) collectAll(ctx context.Context) error { return s.reap(ctx, leader.GCConfig{}) }

// restore gives the broker what the state has, as leader.restore does.
func (s *server) restore() {
	snap := s.store.Snapshot()
	for e := range snap.Evaluations("*", "") {
		if !e.Terminal() {
			s.route(e)
		}
	}
	for n := range snap.Nodes("") {
		if n.Status != drover.NodeStatusDown {
			s.Heartbeat(n.ID)
		}
	}
}

// signalList is workers that wait for an evaluation.
type signalList []*signal

func (l signalList) raise() {
	for _, s := range slices.Clone(l) {
		s.raise()
	}
}
