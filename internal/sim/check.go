package sim

import (
	"strconv"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/tables"
)

// lastSeen is what the checks remember of the state before.
type lastSeen struct {
	snap    *store.Snapshot
	events  uint64   // index of the newest events
	changed []string // allocations of the entry that is being applied
}

// checkEvents: event indexes strictly increase.
func (w *World) checkEvents(ev drover.Events) {
	if w.quorum == nil && (w.servers[0] == nil || w.servers[0].process.Over) {
		return // the log is being replayed
	}
	if ev.Index <= w.last.events {
		w.Breach("events of index %d come after those of %d", ev.Index, w.last.events)
	}
	for _, e := range ev.Events {
		if e.Index != ev.Index {
			w.Breach("an event of index %d has index %d", ev.Index, e.Index)
		}
		if e.Topic == drover.TopicAllocation {
			w.last.changed = append(w.last.changed, e.Key)
		}
	}
	w.last.events = ev.Index
}

// checkEntry checks what must hold at every index.
func (w *World) checkEntry(s *store.Snapshot, index uint64) {
	if s.Index() != index || w.last.snap != nil && index <= w.last.snap.Index() {
		w.Breach("the state has index %d after entry %d", s.Index(), index)
	}
	before := w.last.snap
	w.last.snap = s
	if why := w.extra.Applied(before, s, w.Now); why != "" {
		w.Breach("index %d: %s", index, why)
	}
	if before != nil && before.TableIndex(tables.Allocs) == s.TableIndex(tables.Allocs) &&
		before.TableIndex(tables.Nodes) == s.TableIndex(tables.Nodes) {
		return
	}
	touched := map[string]bool{}
	for _, id := range w.last.changed {
		if a := s.Allocation(id); a != nil {
			touched[a.NodeID] = true
			if before != nil {
				w.checkChange(s, before.Allocation(id), a)
			}
		}
	}
	w.last.changed = w.last.changed[:0]
	for n := range s.Nodes("") {
		w.checkNode(s, n, touched[n.ID] || index%16 == 0) // all of them now and then, should an event be missing
	}
}

// checkNode: what the store counts as used is what the allocations hold, is no more than there is, and no port is held
// twice.
func (w *World) checkNode(s *store.Snapshot, n *drover.Node, recount bool) {
	used := s.Used(n.ID)
	if ok, dim := used.Fits(n.Total()); !ok {
		w.Breach("index %d: node %s is over its %s: %v of %v", s.Index(), n.Name, dim, used, n.Total())
	}
	if !recount {
		return
	}
	var held drover.Capacity
	ports := map[string]string{}
	for a := range s.AllocationsByNode(n.ID) {
		if a.HoldsResources() {
			held = held.Add(a.AllocatedResources.Used())
			w.checkPorts(a, ports)
		}
	}
	if held != used {
		w.Breach("index %d: the store counts %v as used on %s, its allocations hold %v", s.Index(), used, n.Name, held)
	}
}

// checkPorts: a port belongs to one allocation of a node.
func (w *World) checkPorts(a *drover.Allocation, taken map[string]string) {
	for _, p := range a.AllocatedResources.Shared.Ports {
		key := a.NodeID + "/" + strconv.Itoa(p.Value)
		if other := taken[key]; other != "" {
			w.Breach("port %d of a node is held by %s and %s", p.Value, other, a.ID)
		}
		taken[key] = a.ID
	}
}

// checkChange: an allocation stays on its node, its statuses never move backwards, its claim is never taken back.
func (w *World) checkChange(s *store.Snapshot, old, a *drover.Allocation) {
	if old == nil {
		return
	}
	if w.quorum != nil {
		w.checkTaken(old, a)
		w.checkIdle(old, a)
		w.checkPlanned(s, old, a)
	}
	switch {
	case old.NodeID != a.NodeID:
		w.Breach("allocation %s moved from node %s to %s", a.ID, old.NodeID, a.NodeID)
	case old.ServerTerminal() && !a.ServerTerminal():
		w.Breach("allocation %s was stopped and is wanted again", a.ID)
	case old.ClientTerminal() && old.ClientStatus != a.ClientStatus && old.ClientStatus != drover.AllocClientLost:
		w.Breach("allocation %s was %s and is %s", a.ID, old.ClientStatus, a.ClientStatus)
	case old.ClientTerminal() && !a.ClientTerminal():
		w.Breach("allocation %s had ended and is %s", a.ID, a.ClientStatus)
	case old.ClientStatus == drover.AllocClientRunning && a.ClientStatus == drover.AllocClientPending && !w.restarted(a):
		w.Breach("allocation %s ran and is pending", a.ID)
	case old.Claim != nil && (a.Claim == nil || a.Claim.RunnerID != old.Claim.RunnerID):
		w.Breach("the claim of %s was taken back", a.ID)
	}
}

// restarted reports whether a task of the allocation is between two runs, or its node forgot all: then pending is what
// Nomad calls it.
func (w *World) restarted(a *drover.Allocation) bool {
	for _, n := range w.nodes {
		if n.Spec.ID == a.NodeID && n.wiped {
			return true
		}
	}
	for _, t := range a.TaskStates {
		if t.Restarts > 0 {
			return true
		}
	}
	return false
}

// checkAcked: what a client was told is in the log.
func (w *World) checkAcked() {
	all := w.entries()
	if n := len(all); w.clients.acked > 0 && (n == 0 || w.clients.acked > all[n-1].index) {
		w.Breach("a client was told index %d, the log ends before", w.clients.acked)
	}
}
