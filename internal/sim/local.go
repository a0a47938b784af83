package sim

import (
	"maps"
	"slices"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/node/allocrunner"
	"github.com/drover-project/drover/internal/node/taskmachine"
)

// local is an allocation as its node knows it: allocrunner and taskrunner without goroutines, around the real task
// machine and the real derivation of the client status. All tasks are main ones.
type local struct {
	n       *node
	alloc   *drover.Allocation
	group   *drover.TaskGroup
	tasks   []*localTask
	killing bool
	ended   bool
	later   []func() // what waits for control's word after a restart of the agent
	health  *drover.AllocDeploymentStatus
	well    uint64 // the watch for health under way
	last    exchange.AllocUpdate
}

// localTask is a task of a local allocation, with the state of the real task machine.
type localTask struct {
	l      *local
	spec   *drover.Task
	view   taskmachine.View
	status taskmachine.Status
	turn   uint64 // counts starts of work; an older answer means nothing
}

// newLocal returns an allocation whose tasks have not begun; settle starts them.
func newLocal(n *node, alloc *drover.Allocation, g *drover.TaskGroup) *local {
	l := &local{n: n, alloc: alloc, group: g}
	for _, t := range g.Tasks {
		l.tasks = append(l.tasks, &localTask{
			l: l, spec: t, view: taskmachine.ViewOf(alloc.Job, g, t, 30*time.Second), status: taskmachine.New(n.clock()),
		})
	}
	return l
}

// locals returns what the node knows in an order that repeats.
func (n *node) locals() []*local {
	out := make([]*local, 0, len(n.stored))
	for _, id := range slices.Sorted(maps.Keys(n.stored)) {
		out = append(out, n.stored[id])
	}
	return out
}

// tell gives the allocation its newer version; one that has ended says so again if control does not know it.
func (l *local) tell(alloc *drover.Allocation) {
	if alloc.AllocModifyIndex >= l.alloc.AllocModifyIndex {
		l.alloc = alloc
	}
	unseen := alloc.ClientStatus == drover.AllocClientUnknown && l.last.ID != ""
	if (l.ended || unseen) && l.last.ClientStatus != alloc.ClientStatus {
		l.n.add(l.last)
	}
	if alloc.ServerTerminal() {
		l.kill()
	}
	l.settle()
}

// kill stops all tasks; a second call does nothing.
func (l *local) kill() {
	if l.ended || l.killing {
		return
	}
	l.killing = true
	for _, t := range l.tasks {
		t.apply(taskmachine.Kill{})
	}
	l.settle()
}

// settle does what is due and reports what changed.
func (l *local) settle() {
	if l.ended {
		return
	}
	if !l.killing {
		l.react()
	}
	if !l.killing && len(l.later) == 0 {
		for _, t := range l.tasks {
			if t.status.Phase == taskmachine.Pending {
				t.apply(taskmachine.Go{})
			}
		}
	}
	l.ended = !slices.ContainsFunc(l.tasks, func(t *localTask) bool { return t.status.Phase != taskmachine.Dead })
	l.watchHealth()
	l.report()
}

// react ends siblings of a failed task.
func (l *local) react() {
	for _, t := range l.tasks {
		if t.status.Phase == taskmachine.Dead && (t.status.State.Failed || t.spec.Leader) && len(l.tasks) > 1 {
			l.killing = true
			for _, o := range l.tasks {
				o.apply(taskmachine.Kill{Type: drover.TaskSiblingFailed, Sibling: t.spec.Name})
			}
			return
		}
	}
}

// report tells control how the allocation is, if that changed since the last report. An allocation counts as running
// until its last task has ended: control must not place its replacement beside what still runs.
func (l *local) report() {
	u := exchange.AllocUpdate{ID: l.alloc.ID, TaskStates: map[string]*drover.TaskState{}, DeploymentStatus: l.health}
	failed := false
	for _, t := range l.tasks {
		u.TaskStates[t.spec.Name] = t.status.State
		failed = failed || t.status.State.Failed
	}
	u.ClientStatus, u.ClientDescription = allocrunner.ClientStatus(u.TaskStates)
	if u.ClientStatus == drover.AllocClientFailed && !l.ended {
		u.ClientStatus, u.ClientDescription = drover.AllocClientRunning, "Failed tasks, others are being stopped"
	}
	if u.ClientStatus == drover.AllocClientPending && l.killing && l.last.ClientStatus == drover.AllocClientRunning {
		u.ClientStatus, u.ClientDescription = drover.AllocClientRunning, "Tasks are being stopped"
	}
	// The derived status is the product's own code; this is what it must never do.
	if u.ClientStatus == drover.AllocClientComplete && failed {
		l.n.w.breach("allocation %s is reported as complete, but a task failed", l.alloc.ID)
	}
	same := u.ClientStatus == l.last.ClientStatus && maps.Equal(u.TaskStates, l.last.TaskStates) &&
		u.DeploymentStatus == l.last.DeploymentStatus
	if same {
		return
	}
	u.Time = l.n.clock().UnixNano()
	if u.ClientStatus != l.last.ClientStatus {
		l.n.w.say("%s: allocation %s (%s) is %s", l.n.spec.Name, short(l.alloc.ID), l.alloc.Name, u.ClientStatus)
	}
	l.last = u
	l.n.add(u)
}

// watchHealth judges allocations of a deployment, and those of services without one by their migration, which a drain
// waits for: well for min_healthy_time, or failed.
func (l *local) watchHealth() {
	if l.health != nil || l.group.Pool != nil {
		return
	}
	var shortest *time.Duration
	switch {
	case l.alloc.DeploymentID != "" && l.group.Update != nil:
		shortest = l.group.Update.MinHealthyTime
	case l.alloc.DeploymentID == "" && l.group.Migrate != nil && l.alloc.Job.Type == drover.JobTypeService:
		shortest = l.group.Migrate.MinHealthyTime
	default:
		return
	}
	if s := l.alloc.DeploymentStatus; s != nil && s.Healthy != nil {
		return
	}
	running := !l.killing && !slices.ContainsFunc(l.tasks, func(t *localTask) bool { return t.status.Phase != taskmachine.Running })
	if l.ended && !l.alloc.ServerTerminal() {
		l.judge(false)
		return
	}
	if !running {
		l.well = 0
		return
	}
	if l.well != 0 {
		return
	}
	l.n.w.seq++
	mine := l.n.w.seq
	l.well = mine
	minTime := 10 * time.Second
	if shortest != nil {
		minTime = *shortest
	}
	l.n.agent.after(minTime, "healthy", func() {
		if l.well == mine && l.health == nil {
			l.judge(true)
			l.settle()
		}
	})
}

// judge sets the allocation's health once and for all. Whether it is a canary is control's word and stays.
func (l *local) judge(healthy bool) {
	l.health = &drover.AllocDeploymentStatus{Healthy: new(healthy), Timestamp: l.n.clock()}
	if s := l.alloc.DeploymentStatus; s != nil {
		l.health.Canary = s.Canary
	}
}

// restore puts the allocation back after a restart of the agent.
func (l *local) restore() {
	l.later, l.killing, l.last, l.well = nil, false, exchange.AllocUpdate{}, 0
	l.ended = false
	for _, t := range l.tasks {
		t.recover()
	}
	l.settle()
	for _, t := range l.tasks {
		if t.status.Killed && t.status.Phase != taskmachine.Dead {
			l.killing = true
		}
	}
}

// resumeLater does what waited for control's word.
func (l *local) resumeLater() {
	later := l.later
	l.later = nil
	for _, f := range later {
		f()
	}
	l.settle()
}
