package sim

import (
	"bytes"
	"math/bits"
	"slices"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/fsm"
	"github.com/drover-project/drover/internal/control/store"
)

// quorum is what several servers agree on: raft's contract, played by a stupid log. There is one list of entries, to which the
// elected leader alone appends, if it reaches a majority that has the entry; the others have a prefix of it. What is simulated
// is what control can see of that: terms, delays, followers that lag, and a leader that stood still and does not know yet that
// another was elected. There are proposals, too, of which nobody knows whether they are committed. How servers compare logs is
// not.
type quorum struct {
	w       *World
	term    uint64
	leader  *server // elected last; it may have ended, or believe that it leads no more, or still
	entries []entry
	next    uint64 // index of the next entry
	skip    bool   // the term has no entry yet: raft begins it with one of its own
	orphans []*proposal
	head    *fsm.FSM // the state of who lags in nothing
	history map[uint64]*store.Snapshot
	begins  string          // the server whose incarnation begins with the entry that is looked at; "" otherwise
	plans   bool            // the entry that is looked at is the planner's
	stopped map[string]bool // allocations that a plan stopped
}

// member is what a server is in a quorum.
type member struct {
	leader   int                  // whom it believes to lead; -1 = nobody
	contact  time.Time            // when it heard of the leader last
	patience time.Duration        // after so much silence it wants to be elected
	majority time.Time            // when it reached one last, while it leads
	feeding  bool                 // entries are on their way to it
	ready    uint64               // the term in which it has all that was acknowledged before
	began    time.Time            // its term
	beats    map[string]time.Time // nodes that the leader heard of in its term
	answers  map[uint64]answer    // of the newest entries
}

// answer is what an entry's command answered.
type answer struct {
	value any
	err   error
}

// How fast servers notice each other; hashicorp/raft's defaults.
const (
	tickEvery  = 100 * time.Millisecond
	leaderFor  = 500 * time.Millisecond // that a leader goes on without a majority
	silentFor  = time.Second            // after which a follower votes for another
	keptAnswer = 500
)

// witness is the observer of the state that lags in nothing.
type witness struct {
	fsm.Observers
	w *World
}

// Events implements fsm.Observer.
func (o witness) Events(ev drover.Events) { o.w.checkEvents(ev) }

func newQuorum(w *World) *quorum {
	q := &quorum{w: w, next: 1, history: map[uint64]*store.Snapshot{}, stopped: map[string]bool{}}
	q.head = fsm.New(store.New(), witness{w: w})
	return q
}

// running reports whether the process is there and does not stand still.
func (s *server) running() bool { return !s.process.Over && !s.host.Stopped }

// last is the index of the newest entry, 0 without one.
func (q *quorum) last() uint64 {
	if n := len(q.entries); n > 0 {
		return q.entries[n-1].index
	}
	return 0
}

// reaches reports whether messages get from a server to another now, and it is there to read them.
func (q *quorum) reaches(from, to *server) bool {
	return from.running() && to.running() && q.w.net.Open(from.String(), to.String())
}

// majority reports whether the server reaches a majority of all and is answered, itself included.
func (q *quorum) majority(s *server) bool {
	n := 1
	for _, o := range q.w.servers {
		if o != s && q.reaches(s, o) && q.reaches(o, s) {
			n++
		}
	}
	return 2*n > len(q.w.servers)
}

// tick lets servers notice each other.
func (q *quorum) tick() {
	for _, s := range q.w.servers {
		if s.running() {
			q.look(s)
		}
	}
	q.elect()
	for _, s := range q.w.servers {
		if s.running() && s.accepts {
			q.resend(s)
			q.drain(s)
		}
	}
	q.w.After(tickEvery, "tick", q.tick)
}

// look lets a server notice who leads.
func (q *quorum) look(s *server) {
	m, now := &s.member, q.w.Now
	for _, o := range q.w.servers {
		if o != s && o.disk.term > s.disk.term && q.reaches(o, s) {
			s.disk.term = o.disk.term
			if s.accepts {
				q.stepDown(s, "another was elected")
			}
		}
	}
	l := q.leader
	switch {
	case s.accepts && q.majority(s):
		m.majority = now
	case s.accepts && now.Sub(m.majority) > leaderFor:
		q.stepDown(s, "it reaches no majority")
	case s.accepts:
	case l != nil && l != s && l.accepts && q.reaches(l, s):
		m.contact, m.leader, s.disk.term = now, l.number, q.term
		q.feed(s)
	case now.Sub(m.contact) > silentFor:
		m.leader = -1
	}
}

// elect lets one of those who hear of no leader become it.
func (q *quorum) elect() {
	if l := q.leader; l != nil && l.running() && l.accepts && q.majority(l) {
		return
	}
	now, n := q.w.Now, len(q.w.servers)
	for i := range n {
		s := q.w.servers[(i+int(q.term))%n]
		m := &s.member
		if !s.running() || s.accepts || s.disk.logged < q.last() || now.Sub(m.contact) < m.patience {
			continue
		}
		votes := 1
		for _, o := range q.w.servers {
			if o != s && !o.accepts && q.reaches(s, o) && q.reaches(o, s) && now.Sub(o.member.contact) > silentFor {
				votes++
			}
		}
		if 2*votes > n {
			m.patience = q.w.Between(time.Second, 3*time.Second)
			if q.w.Chance(70) { // else the votes were split
				q.crown(s)
			}
			return
		}
	}
}

// crown makes the server the leader of a new term. What was in flight at the former one, and reached the new, is committed.
func (q *quorum) crown(s *server) {
	inherited := q.orphans
	if old := q.leader; old != nil && old != s && old.accepts {
		inherited = append(slices.Clone(inherited), old.flying...)
	}
	q.orphans = nil
	q.term++
	q.leader, q.skip = s, true
	before := len(q.entries)
	for _, p := range inherited {
		if p.reached&(1<<s.number) == 0 {
			break
		}
		q.append(p)
	}
	s.disk.logged = q.last()
	m := &s.member
	s.disk.term, m.leader, m.majority, m.began, m.beats = q.term, s.number, q.w.Now, q.w.Now, map[string]time.Time{}
	s.accepts = true
	q.w.Say("%s is elected in term %d, with %d of %d entries of the former leader", s, q.term, len(q.entries)-before, len(inherited))
	s.lead()
}

// propose takes an entry of a server that believes to lead.
func (q *quorum) propose(s *server, p *proposal, due time.Time) {
	p.due, p.by, p.at, p.reached = due, s, q.w.Now, 1<<s.number
	for _, o := range q.w.servers {
		if o == s {
			continue
		}
		q.w.After(q.w.net.Delay(), "append", func() {
			if s.accepts && q.reaches(s, q.w.servers[o.number]) {
				p.reached |= 1 << o.number
			}
		})
	}
	q.w.At(due, "commit", func() { q.drain(s) })
}

// resend sends again what did not arrive.
func (q *quorum) resend(s *server) {
	for _, o := range q.w.servers {
		if o != s && q.reaches(s, o) && q.reaches(o, s) {
			for _, p := range s.flying {
				if q.w.Now.Sub(p.at) > tickEvery {
					p.reached |= 1 << o.number
				}
			}
		}
	}
}

// drain commits what a majority has.
func (q *quorum) drain(s *server) {
	for q.leader == s && s.running() && s.accepts && len(s.flying) > 0 {
		p := s.flying[0]
		if p.due.After(q.w.Now) || 2*bits.OnesCount64(p.reached) <= len(q.w.servers) || !q.majority(s) {
			return
		}
		s.flying = s.flying[1:]
		p.index = q.append(p)
		for _, o := range q.w.servers {
			if p.reached&(1<<o.number) != 0 {
				o.disk.logged = p.index
			}
		}
		s.catchUp(p.index)
		a := s.member.answers[p.index]
		p.value, p.err, p.done = a.value, a.err, true
		if q.w.lossy && q.w.Chance(10) {
			p.index, p.value, p.err = 0, nil, unavailable("the answer was lost")
		}
		p.asks.WakeAfter(q.w.Between(0, time.Millisecond))
		for _, o := range q.w.servers {
			if o != s && q.reaches(s, o) {
				q.feed(o)
			}
		}
	}
}

// append makes the entry one that is committed, and looks at what it does to the state.
func (q *quorum) append(p *proposal) (index uint64) {
	index = q.next
	if q.skip {
		index, q.skip = index+1, false
	}
	q.next = index + 1
	q.entries = append(q.entries, entry{index, p.data})
	_, _ = q.head.Apply(index, p.data) // its error is the proposer's
	s := q.head.Store().Snapshot()
	q.history[index] = s
	before := q.w.last.snap
	q.begins, q.plans = "", false
	if c, err := command.Decode(p.data); err == nil {
		_, q.plans = c.(*command.ApplyPlans)
		if b, ok := c.(*command.BeginIncarnation); ok {
			q.begins = b.Server
		}
	}
	q.w.checkEntry(s, index)
	q.w.checkAgreed(before, s, p)
	return index
}

// stepDown ends the belief of a server that it leads. Who waits for its log is told that nobody knows.
func (q *quorum) stepDown(s *server, why string) {
	q.w.Say("%s leads no more: %s", s, why)
	s.unlead()
	s.member.leader = -1
	q.lost(s)
}

// lost keeps what was in flight at a server that leads no more: the next leader may have it.
func (q *quorum) lost(s *server) {
	if q.leader == s {
		q.orphans = append(q.orphans, s.flying...)
	}
	for _, p := range s.flying {
		p.done, p.err = true, unavailable("leadership was lost; the entry may be committed or not")
		p.asks.WakeAfter(q.w.Between(0, 100*time.Millisecond))
	}
	s.flying = nil
}

// join makes a process that began a follower.
func (s *server) join() {
	s.member = member{leader: -1, contact: s.w.Now, patience: s.w.Between(time.Second, 3*time.Second), answers: map[uint64]answer{}}
	s.process.Spawn("lessee", s.lease)
}

// feed has a server that lags told of the entries that it does not have.
func (q *quorum) feed(s *server) {
	if s.member.feeding || s.store.Index() >= q.last() {
		return
	}
	s.member.feeding = true
	l := q.leader
	s.process.After(q.w.net.lag(s), "entries", func() {
		s.member.feeding = false
		if q.reaches(l, s) && l.accepts {
			s.catchUp(q.last())
		}
	})
}

// catchUp applies the entries up to an index, or puts the newest state in place of the server's.
func (s *server) catchUp(to uint64) {
	q, d := s.w.quorum, s.disk
	from, _ := slices.BinarySearchFunc(q.entries, s.store.Index()+1, func(e entry, i uint64) int { return int(e.index) - int(i) })
	if behind := len(q.entries) - from; behind > 40 && !s.accepts && s.w.Chance(30) {
		s.install()
		from = len(q.entries)
	}
	for _, e := range q.entries[from:] {
		if e.index > to {
			break
		}
		value, err := s.fsm.Apply(e.index, e.data)
		s.member.answers[e.index] = answer{value, err}
		delete(s.member.answers, e.index-keptAnswer)
		if s.w.Rng.IntN(300) == 0 {
			s.compact()
		}
		if d.lostAt == e.index && s.fsm.Hash() != d.lost {
			s.w.Breach("%s has another state at index %d than before it was killed", s, e.index)
		}
	}
	d.logged = max(d.logged, to)
}

// install puts the newest state in place of the server's, as a snapshot does.
func (s *server) install() {
	var b bytes.Buffer
	if err := s.w.quorum.head.Snapshot(&b); err != nil {
		s.w.Breach("cannot write a snapshot: %v", err)
	}
	if err := s.fsm.Restore(&b); err != nil {
		s.w.Breach("cannot restore a snapshot: %v", err)
	}
	s.w.Say("%s gets a snapshot of index %d", s, s.store.Index())
}

// Restored implements fsm.RestoreObserver.
func (s *server) Restored(index uint64) {
	if s.leader != nil {
		s.leader.Restored(index)
	}
	if s.runners != nil {
		s.runners.missed = true
		s.runners.newsUp.Raise()
	}
}

// heard notes a sign of life of a node at a server that leads.
func (m *member) heard(nodeID string, now time.Time) {
	if m.beats != nil {
		m.beats[nodeID] = now
	}
}

// found begins the cluster, as its first leader does: its id, its epoch and the version of what is written.
func (q *quorum) found(s *server) error {
	if s.store.Snapshot().Cluster().Age() != "" {
		return nil
	}
	for _, c := range []command.Command{
		&command.InitCluster{ID: "cluster", Epoch: "00000000000000000001"}, &command.RaiseVersion{Version: command.Newest},
	} {
		if _, _, err := (ownLog{s}).Propose(s.ctx, c); err != nil {
			return err
		}
	}
	return nil
}
