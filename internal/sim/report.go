package sim

import (
	"slices"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/sim/herd"
	"github.com/drover-project/drover/internal/sim/virtual"
)

// This file is the agent's pull and push.

// maxBehind is how many assignments that are older than the last one an agent refuses before it believes them: a server
// that was restored from an old state would otherwise never be heard.
const (
	maxBehind = 8
	// pullWait is how long a pull waits for news. The product waits for five minutes.
	pullWait = 30 * time.Second
)

// pull asks for the node's assignment until the agent ends, by blocking queries of up to pullWait. It begins when the
// node is registered. A server that does not know the node makes it register again, and read everything anew.
func (n *node) pull(p *virtual.Proc) {
	behind := 0
	pause := 100 * time.Millisecond
	for {
		if !n.heard {
			p.Sleep(50 * time.Millisecond)
			continue
		}
		seen := n.sight.Now()
		if n.w.broken == obedient {
			seen = exchange.Seen{Index: seen.Index}
		}
		a, err := ask(n, p, func(_ *virtual.Proc, s *server) (exchange.Assignment, error) {
			return s.control.Pull(s.ctx, n.Spec.ID, seen, pullWait)
		})
		ok, news := false, false
		if err == nil {
			if ok, news = n.sight.Take(a, behind >= maxBehind); !ok {
				behind++
			}
			ok = ok || n.w.broken == obedient
		} else if drover.CodeOf(err) == drover.NotFound {
			n.again.Raise()
			n.sight.Forget()
		}
		if !ok {
			p.Sleep(pause)
			pause = min(2*pause, 5*time.Second)
			continue
		}
		behind, pause = 0, 100*time.Millisecond
		n.checkSight(a)
		if news {
			n.take(a)
		}
		p.Sleep(5 * time.Millisecond)
	}
}

// take makes the node do what control wants.
func (n *node) take(a exchange.Assignment) {
	listed := map[string]bool{}
	for _, alloc := range a.Allocs {
		if alloc.NodeID != n.Spec.ID {
			n.w.Breach("node %s is given allocation %s of node %s", n.Spec.Name, alloc.ID, alloc.NodeID)
		}
		listed[alloc.ID] = true
		n.said = max(n.said, alloc.Reported)
		if l := n.Stored[alloc.ID]; l != nil {
			l.Tell(alloc)
		} else if !n.refused[alloc.ID] {
			n.admit(alloc)
		}
	}
	for _, l := range n.Locals() {
		if listed[l.Alloc.ID] {
			continue
		}
		if l.Ended {
			delete(n.Stored, l.Alloc.ID)
			continue
		}
		l.Kill()
	}
	for id := range n.refused {
		if !listed[id] {
			delete(n.refused, id)
		}
	}
	if !n.contacted {
		n.contacted = true
		for _, l := range n.Locals() {
			l.ResumeLater()
		}
	}
}

// admit takes an allocation in that the node does not know. One that was stopped before is reported as complete. A
// runner that may have run here before is reported as failed, because a warm runner never starts twice.
func (n *node) admit(alloc *drover.Allocation) {
	switch g := alloc.Job.Group(alloc.TaskGroup); {
	case alloc.ClientTerminal():
	case alloc.ServerTerminal():
		n.refuse(alloc, drover.AllocClientComplete, "It was stopped before it started")
	case g.Pool != nil && (alloc.Claim != nil || alloc.ClientStatus == drover.AllocClientRunning):
		n.refuse(alloc, drover.AllocClientFailed, "The node does not remember this runner; it is never started a second time")
	default:
		l := herd.NewAllocation(n.Machine, alloc, g)
		n.Stored[alloc.ID] = l
		l.Settle()
	}
}

// refuse reports an allocation as ended without starting it. It stays refused until control lists it no more.
func (n *node) refuse(alloc *drover.Allocation, status, why string) {
	n.refused[alloc.ID] = true
	states := map[string]*drover.TaskState{}
	for _, t := range alloc.Job.Group(alloc.TaskGroup).Tasks {
		states[t.Name] = &drover.TaskState{State: drover.TaskStateDead, Failed: status == drover.AllocClientFailed, FinishedAt: n.Clock()}
	}
	n.add(exchange.AllocUpdate{ID: alloc.ID, ClientStatus: status, ClientDescription: why, TaskStates: states, Time: n.Clock().UnixNano()})
}

// add replaces what is pending of the allocation.
func (n *node) add(u exchange.AllocUpdate) {
	if _, known := n.pending[u.ID]; !known {
		n.order = append(n.order, u.ID)
	}
	n.pending[u.ID] = u
	n.urgent.Raise()
}

// push sends what changed until the agent ends, as much as there is in one call. It begins after the first assignment.
// What could not be sent goes back to the front, unless something newer is pending about the same allocation.
func (n *node) push(p *virtual.Proc) {
	pause := 100 * time.Millisecond
	for {
		if len(n.order) == 0 || !n.contacted {
			n.urgent.Wait(p, time.Second)
			continue
		}
		ids := n.order
		var updates []exchange.AllocUpdate
		for _, id := range ids {
			u := n.pending[id]
			n.said++
			u.Order = n.said
			updates = append(updates, u)
		}
		n.pending, n.order = map[string]exchange.AllocUpdate{}, nil
		_, err := ask(n, p, func(p *virtual.Proc, s *server) (struct{}, error) { return struct{}{}, s.push(p, n, updates) })
		if err == nil {
			pause = 100 * time.Millisecond
			p.Sleep(5 * time.Millisecond)
			continue
		}
		for _, u := range slices.Backward(updates) {
			if _, newer := n.pending[u.ID]; !newer {
				n.pending[u.ID] = u
				n.order = append([]string{u.ID}, n.order...)
			}
		}
		p.Sleep(pause)
		pause = min(2*pause, 10*time.Second)
	}
}
