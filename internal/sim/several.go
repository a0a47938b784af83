package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/assignment"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/exec/runner"
	"github.com/drover-project/drover/internal/sim/scenario"
	"github.com/drover-project/drover/internal/tables"
)

// This file has the faults and the checks of a world with several servers.

// The leader's patience with nodes. That of a new leader is short here, so that nodes do get lost within a scenario.
const (
	heartbeatTTL = 10 * time.Second // the leader's default
	failoverTTL  = 40 * time.Second
)

// failoverTTL is how long a new leader waits for nodes; one that is alone does not.
func (s *server) failoverTTL() time.Duration {
	if s.w.quorum == nil || s.w.broken == hasty {
		return 0
	}
	return failoverTTL
}

// trouble notes that something is wrong with a server until then. What it handed out and did not record may be lost by that.
func (w *World) trouble(number int, d time.Duration) {
	if until := w.Now.Add(d); until.After(w.troubled[number]) {
		w.troubled[number] = until
	}
}

// serverFault performs bad luck of several servers, and reports whether the verb names any.
func (w *World) serverFault(s *server, verb string, d time.Duration, o scenario.Options) bool {
	name, hurts := s.String(), []int{s.number}
	switch verb {
	case "lose":
		if l := w.quorum.leader; l != nil && l.accepts && l.running() {
			w.quorum.stepDown(l, "it hands over")
			l.member.contact, l.member.patience = w.Now, 3*time.Second
		}
	case "pause":
		if !s.running() {
			return true
		}
		w.Say("%s stands still", name)
		s.host.Stop()
		w.After(d, "goes on", func() {
			if s.host.Stopped {
				w.Say("%s goes on", name)
				s.host.GoOn()
			}
		})
	case "part", "alone":
		hurts = append(hurts, w.part(s, verb, d, o)...)
	case "lag":
		w.lagging[s.number] = w.Now.Add(d)
	case "step":
		w.steps[s.number] += time.Duration(o["seconds"]) * time.Second
	case "slownet", "loss", "repeat":
		w.net.Worsen(verb, d, o["percent"])
		hurts = hurts[:0]
		for i := range w.servers {
			hurts = append(hurts, i)
		}
	case "crash", "trap", "logfull", "lossy":
		for i := range w.servers {
			w.trouble(i, d+time.Minute)
		}
		return false // as with one
	default:
		return false
	}
	for _, i := range hurts {
		w.trouble(i, d+20*time.Second)
	}
	return true
}

// part cuts a server from another, or alone from everybody, in one direction or both. It returns the other.
func (w *World) part(s *server, verb string, d time.Duration, o scenario.Options) (other []int) {
	name, from := s.String(), "*"
	if verb == "part" {
		i := (s.number + 1 + o["other"]%(len(w.servers)-1)) % len(w.servers)
		other, from = []int{i}, w.servers[i].String()
	}
	if o["way"] != 1 {
		w.net.Shut(name, from, d)
	}
	if o["way"] != 0 {
		w.net.Shut(from, name, d)
	}
	return other
}

// isolate cuts a node from its servers.
func (n *node) isolate(d time.Duration) {
	if n.w.quorum != nil {
		n.w.net.Shut(n.Spec.Name, "*", d)
		n.w.net.Shut("*", n.Spec.Name, d)
		return
	}
	n.cut = true
	n.w.After(d, "joined", func() { n.cut = false })
}

// healServers ends all faults of servers.
func (w *World) healServers() {
	w.net.Heal()
	for i, s := range w.servers {
		w.lagging[i] = time.Time{}
		if s.host.Stopped {
			s.host.GoOn()
		}
	}
}

// checkAgreed checks what an entry of several servers must not do.
func (w *World) checkAgreed(before, s *store.Snapshot, p *proposal) {
	if before == nil {
		return
	}
	if before.TableIndex(tables.Nodes) != s.TableIndex(tables.Nodes) {
		for n := range s.Nodes("") {
			w.checkLost(before.Node(n.ID), n, p)
		}
	}
	if before.TableIndex(tables.Lessees) != s.TableIndex(tables.Lessees) || s.Index()%16 == 0 {
		w.checkLeases(s)
	}
}

// checkLost: a node is called lost only by a leader that had time to hear of it, and did not. A clock may be slow by a twentieth.
func (w *World) checkLost(old, n *drover.Node, p *proposal) {
	gone := n.Status == drover.NodeStatusDown || n.Status == drover.NodeStatusDisconnected
	if old == nil || old.Status != drover.NodeStatusReady || !gone {
		return
	}
	m := &p.by.member
	at, heard := m.beats[n.ID]
	if led := p.at.Sub(m.began); !heard && led < failoverTTL*9/10 {
		w.Breach("node %s is %s, %s after %s began to lead", n.Name, n.Status, led, p.by)
	}
	if silent := p.at.Sub(at); heard && silent >= 0 && silent < heartbeatTTL*9/10 { // it may be heard while the entry is on its way
		w.Breach("node %s is %s, %s after %s heard of it", n.Name, n.Status, p.at.Sub(at), p.by)
	}
}

// checkLeases: what is warm is leased to a server that has not ended, and what was handed out and is not recorded to the one
// that did it.
func (w *World) checkLeases(s *store.Snapshot) {
	live := map[uint64]bool{}
	for l := range s.Lessees() {
		live[l.Incarnation] = true
	}
	for a := range s.Allocations("*", "") {
		if a.Terminal() || a.Lease == 0 || len(live) == 0 {
			continue
		}
		if !live[a.Lease] {
			w.Breach("runner %s is leased to incarnation %d, which has ended", a.ID, a.Lease)
		}
		if h, ok := w.clients.handed[a.ID]; ok && a.Claim == nil && a.Lease != h.lease {
			w.Breach("runner %s was handed out by server %d under lease %d, and is leased to %d", a.ID, h.by, h.lease, a.Lease)
		}
	}
}

// checkTaken: a runner whose claim is recorded survives the end of its server. So does one that was handed out by a server
// that nothing was wrong with, or that came back in time and read its journal.
func (w *World) checkTaken(old, a *drover.Allocation) {
	if old.ServerTerminal() || !takenAway(a) {
		return
	}
	if old.Claim != nil {
		w.Breach("runner %s, whose claim is recorded, is stopped as its server ended", a.ID)
	}
	h, ok := w.clients.handed[a.ID]
	if !ok {
		return
	}
	if w.troubled[h.by].Before(h.at.Add(-30 * time.Second)) {
		w.Breach("runner %s, which server %d handed out, is stopped, and nothing was wrong with that", a.ID, h.by)
	}
	if w.quorum.begins == w.servers[h.by].String() {
		w.Breach("runner %s, which server %d handed out, is stopped as that came back, which did not record it before", a.ID, h.by)
	}
}

// checkPlanned: no plan stops a runner that was handed out and is not recorded as that, while the server that did so is heard of. A job
// that ends takes all of its runners along. What that server ended, for its claimer or as it was idle, is stopped by whoever comes first.
func (w *World) checkPlanned(s *store.Snapshot, old, a *drover.Allocation) {
	job := s.Job(a.Namespace, a.JobID)
	if !w.quorum.plans || old.ServerTerminal() || !a.ServerTerminal() || old.Claim != nil || job == nil || job.Stop {
		return
	}
	w.quorum.stopped[a.ID] = true
	if h, ok := w.clients.handed[a.ID]; ok && !h.ended && s.Lessee(h.lease) != nil {
		w.Breach("runner %s, which server %d handed out, is stopped by a plan: %s", a.ID, h.by, a.DesiredDescription)
	}
}

// takenAway reports whether the allocation is stopped as the lease on it ended.
func takenAway(a *drover.Allocation) bool {
	return a.ServerTerminal() && strings.Contains(a.DesiredDescription, "handed out by a server that ended")
}

// checkIdle: nobody ends a runner for being idle before its time is over. None is used here, and whoever takes one over waits
// anew. Clocks may be wrong by a twentieth.
func (w *World) checkIdle(old, a *drover.Allocation) {
	h, ok := w.clients.handed[a.ID]
	if !ok || old.ServerTerminal() || !a.ServerTerminal() || !strings.Contains(a.DesiredDescription, runner.ErrIdle.Error()) {
		return
	}
	if idle, was := h.claim.IdleTimeout, w.Now.Sub(h.at); idle == 0 || was < idle*9/10 {
		w.Breach("runner %s is ended as idle after %s, its idle timeout is %s", a.ID, was, idle)
	}
}

// checkSight: a node obeys no older state than it has seen, and what it is told is what that state wants.
func (n *node) checkSight(a exchange.Assignment) {
	if n.w.quorum == nil {
		return
	}
	if a.Age != "" && a.State < n.obeyed {
		n.w.Breach("%s obeys state %d after state %d", n.Spec.Name, a.State, n.obeyed)
	}
	n.obeyed = max(n.obeyed, a.State)
	s := n.w.quorum.history[a.State]
	if s == nil {
		return
	}
	want := assignment.Wanted(s, n.Spec.ID)
	same := slices.EqualFunc(want.Allocs, a.Allocs, func(x, y *drover.Allocation) bool {
		return x.ID == y.ID && x.ModifyIndex == y.ModifyIndex
	})
	if !same {
		n.w.Breach("%s is told what state %d does not want of it", n.Spec.Name, a.State)
	}
}

// checkAlone: a task that begins to run on a machine runs on no other.
func (n *node) checkAlone(task string) {
	for _, o := range n.w.nodes {
		if x := o.Runs[task]; o != n && x != nil && !x.Dead && x.Exit == nil {
			n.w.Breach("task %s starts on %s while it runs on %s", task, n.Spec.Name, o.Spec.Name)
		}
	}
}

// serversRest says what keeps the servers from rest; "" if nothing does.
func (w *World) serversRest() string {
	if w.quorum == nil {
		if len(w.servers[0].flying) > 0 {
			return "entries are in flight"
		}
		return ""
	}
	l := w.quorum.leader
	if l == nil || !l.accepts || !l.Leading() || len(l.flying) > 0 {
		return "nobody leads, or entries are in flight"
	}
	s := w.truth().Store().Snapshot()
	for _, o := range w.servers {
		switch {
		case o.store.Index() != w.quorum.last():
			return fmt.Sprintf("%s has index %d of %d", o, o.store.Index(), w.quorum.last())
		case o.runners == nil || !o.holds():
			return fmt.Sprintf("%s hands out no runners", o)
		case s.Lessee(o.runners.lease) == nil:
			return fmt.Sprintf("%s hands out runners under a lease that has ended", o)
		}
	}
	return w.idleRest(s)
}

// checkStates: all servers have the same state at rest.
func (w *World) checkStates() {
	want := w.truth().Hash()
	for _, s := range w.servers {
		if s.fsm.Hash() != want {
			w.Breach("%s has another state at index %d than the log gives", s, s.store.Index())
		}
	}
}

// idleRest: idle timers were kept by somebody.
func (w *World) idleRest(s *store.Snapshot) string {
	for a := range s.Allocations("*", "") {
		h, ok := w.clients.handed[a.ID]
		if ok && a.Claim != nil && !a.Terminal() && h.claim.IdleTimeout > 0 {
			return fmt.Sprintf("runner %s is claimed, and idle for longer than %s", a.ID, h.claim.IdleTimeout)
		}
	}
	return ""
}
