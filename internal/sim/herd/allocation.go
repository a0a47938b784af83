package herd

import (
	"maps"
	"slices"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/node/allocrunner"
	"github.com/drover-project/drover/internal/node/taskmachine"
	"github.com/drover-project/drover/internal/sim/virtual"
)

// Allocation is an allocation as its node knows it: allocrunner and taskrunner without goroutines, around the real task
// machine and the real derivation of the client status. All tasks are main ones.
type Allocation struct {
	n       *Machine
	Alloc   *drover.Allocation
	group   *drover.TaskGroup
	Tasks   []*Task
	killing bool
	Ended   bool
	later   []func() // what waits for control's word after a restart of the agent
	health  health
	last    exchange.AllocUpdate
}

// Task is a task of a local allocation, with the state of the real task machine.
type Task struct {
	l      *Allocation
	spec   *drover.Task
	view   taskmachine.View
	Status taskmachine.Status
	turn   uint64 // counts starts of work; an older answer means nothing
}

// NewAllocation returns an allocation whose tasks have not begun; settle starts them.
func NewAllocation(n *Machine, alloc *drover.Allocation, g *drover.TaskGroup) *Allocation {
	l := &Allocation{n: n, Alloc: alloc, group: g, health: health{deployment: alloc.DeploymentID}}
	for _, t := range g.Tasks {
		l.Tasks = append(l.Tasks, &Task{
			l: l, spec: t, view: taskmachine.ViewOf(alloc.Job, g, t, 30*time.Second), Status: taskmachine.New(n.Clock()),
		})
	}
	return l
}

// Locals returns what the node knows in an order that repeats.
func (n *Machine) Locals() []*Allocation {
	out := make([]*Allocation, 0, len(n.Stored))
	for _, id := range slices.Sorted(maps.Keys(n.Stored)) {
		out = append(out, n.Stored[id])
	}
	return out
}

// Tell gives the allocation its newer version; one that has ended says so again if control does not know it.
func (l *Allocation) Tell(alloc *drover.Allocation) {
	if alloc.AllocModifyIndex >= l.Alloc.AllocModifyIndex {
		l.Alloc = alloc
		if g := alloc.Job.Group(l.group.Name); g != nil {
			l.group = g // it was updated in place
		}
	}
	unseen := alloc.ClientStatus == drover.AllocClientUnknown && l.last.ID != ""
	if (l.Ended || unseen) && l.last.ClientStatus != alloc.ClientStatus {
		l.n.Report(l.last)
	}
	if alloc.ServerTerminal() {
		l.Kill()
	}
	l.Settle()
}

// Kill stops all tasks; a second call does nothing.
func (l *Allocation) Kill() {
	if l.Ended || l.killing {
		return
	}
	l.killing = true
	for _, t := range l.Tasks {
		t.apply(taskmachine.Kill{})
	}
	l.Settle()
}

// Settle does what is due and reports what changed.
func (l *Allocation) Settle() {
	if l.Ended {
		return
	}
	if !l.killing {
		l.react()
	}
	if !l.killing && len(l.later) == 0 {
		for _, t := range l.Tasks {
			if t.Status.Phase == taskmachine.Pending {
				t.apply(taskmachine.Go{})
			}
		}
	}
	l.Ended = !slices.ContainsFunc(l.Tasks, func(t *Task) bool { return t.Status.Phase != taskmachine.Dead })
	l.watchHealth()
	l.report()
}

// react ends siblings of a failed task.
func (l *Allocation) react() {
	for _, t := range l.Tasks {
		if t.Status.Phase == taskmachine.Dead && (t.Status.State.Failed || t.spec.Leader) && len(l.Tasks) > 1 {
			l.killing = true
			for _, o := range l.Tasks {
				o.apply(taskmachine.Kill{Type: drover.TaskSiblingFailed, Sibling: t.spec.Name})
			}
			return
		}
	}
}

// report tells control how the allocation is, if that changed since the last report. An allocation counts as running
// until its last task has ended: control must not place its replacement beside what still runs.
func (l *Allocation) report() {
	u := exchange.AllocUpdate{ID: l.Alloc.ID, TaskStates: map[string]*drover.TaskState{}, DeploymentStatus: l.health.found}
	if l.health.found != nil {
		u.DeploymentID = l.health.deployment
	}
	failed := false
	for _, t := range l.Tasks {
		u.TaskStates[t.spec.Name] = t.Status.State
		failed = failed || t.Status.State.Failed
	}
	u.ClientStatus, u.ClientDescription = allocrunner.ClientStatus(u.TaskStates)
	if u.ClientStatus == drover.AllocClientFailed && !l.Ended {
		u.ClientStatus, u.ClientDescription = drover.AllocClientRunning, "Failed tasks, others are being stopped"
	}
	if u.ClientStatus == drover.AllocClientPending && l.killing && l.last.ClientStatus == drover.AllocClientRunning {
		u.ClientStatus, u.ClientDescription = drover.AllocClientRunning, "Tasks are being stopped"
	}
	// The derived status is the product's own code; this is what it must never do.
	if u.ClientStatus == drover.AllocClientComplete && failed {
		l.n.w.Breach("allocation %s is reported as complete, but a task failed", l.Alloc.ID)
	}
	same := u.ClientStatus == l.last.ClientStatus && maps.Equal(u.TaskStates, l.last.TaskStates) &&
		u.DeploymentStatus == l.last.DeploymentStatus
	if same {
		return
	}
	u.Time = l.n.Clock().UnixNano()
	if u.ClientStatus != l.last.ClientStatus {
		l.n.w.Say("%s: allocation %s (%s) is %s", l.n.Spec.Name, virtual.Short(l.Alloc.ID), l.Alloc.Name, u.ClientStatus)
	}
	l.last = u
	l.n.Report(u)
}

// Restore puts the allocation back after a restart of the agent.
func (l *Allocation) Restore() {
	l.later, l.killing, l.last = nil, false, exchange.AllocUpdate{}
	l.health.rest()
	l.Ended = false
	for _, t := range l.Tasks {
		t.recover()
	}
	l.Settle()
	for _, t := range l.Tasks {
		if t.Status.Killed && t.Status.Phase != taskmachine.Dead {
			l.killing = true
		}
	}
}

// ResumeLater does what waited for control's word.
func (l *Allocation) ResumeLater() {
	later := l.later
	l.later = nil
	for _, f := range later {
		f()
	}
	l.Settle()
}
