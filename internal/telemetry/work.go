package telemetry

import (
	"iter"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/exchange"
)

// WorkMetrics is a source of gauges of what a node has been given to do, under Nomad's names. They are allocations and tasks by
// state, what they hold of the node and what is left of it (MHz and MB), and how often tasks were started. allocs are all that
// the node knows, with what it last said of them.
func WorkMetrics(node func() *drover.Node, allocs iter.Seq2[*drover.Allocation, exchange.AllocUpdate]) func(Emit) {
	return func(emit Emit) {
		n := node()
		if n == nil {
			return
		}
		w := work{
			allocs: map[string]int{"migrating": 0, "blocked": 0, "pending": 0, "running": 0, "terminal": 0},
			tasks:  map[string]int{drover.TaskStatePending: 0, drover.TaskStateRunning: 0, drover.TaskStateDead: 0},
		}
		for alloc, said := range allocs {
			if w.add(alloc, said) {
				starts(emit, alloc, said)
			}
		}
		w.emit(emit, n)
	}
}

// work is the sum over a node's allocations.
type work struct {
	allocs, tasks map[string]int
	held          drover.Capacity
	maxMemoryMB   int64
}

// add reports whether the allocation still holds something. One that has ended has no values of its own: a node keeps thousands
// of them for a while, and each would be asked for at every look.
func (w *work) add(alloc *drover.Allocation, said exchange.AllocUpdate) bool {
	for _, t := range said.TaskStates {
		w.tasks[t.State]++
	}
	switch said.ClientStatus {
	case drover.AllocClientPending, "":
		w.allocs["pending"]++
	case drover.AllocClientRunning:
		w.allocs["running"]++
	default:
		w.allocs["terminal"]++
		return false
	}
	w.held = w.held.Add(alloc.AllocatedResources.Used())
	if alloc.AllocatedResources != nil {
		for _, t := range alloc.AllocatedResources.Tasks {
			w.maxMemoryMB += max(t.Memory.MemoryMB, t.Memory.MemoryMaxMB)
		}
	}
	return true
}

func (w *work) emit(emit Emit, n *drover.Node) {
	labels := nodeLabels(n)
	for state, count := range w.allocs {
		emit("nomad.client.allocations."+state, float64(count), labels...)
	}
	for state, count := range w.tasks {
		emit("nomad.client.tasks."+state, float64(count), labels...)
	}
	free := n.Total().Sub(w.held)
	for name, c := range map[string]drover.Capacity{"allocated": w.held, "unallocated": free} {
		emit("nomad.client."+name+".cpu", float64(c.CPU), labels...)
		emit("nomad.client."+name+".memory", float64(c.MemoryMB), labels...)
		emit("nomad.client."+name+".disk", float64(c.DiskMB), labels...)
	}
	emit("nomad.client.allocated.max_memory", float64(w.maxMemoryMB), labels...)
}

// starts tells how often a living allocation's tasks were started, as far as that is remembered with it.
func starts(emit Emit, alloc *drover.Allocation, said exchange.AllocUpdate) {
	for name, t := range said.TaskStates {
		labels := []string{"job", alloc.JobID, "task_group", alloc.TaskGroup, "alloc_id", alloc.ID, "task", name, "namespace", alloc.Namespace}
		restarts := float64(t.Restarts)
		emit("nomad.client.allocs.restart", restarts, labels...)
		if !t.StartedAt.IsZero() {
			emit("nomad.client.allocs.running", restarts+1, labels...)
		}
	}
}
