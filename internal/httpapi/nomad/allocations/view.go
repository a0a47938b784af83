package allocations

import (
	"github.com/drover-project/drover"
	"github.com/drover-project/drover/network"
)

// View is an allocation with the names that its resources had before AllocatedResources, which Nomad's own command line
// still reads. What they repeat is derived when somebody asks, and stored nowhere.
type View struct {
	*drover.Allocation
	Resources          *drover.Resources            // of all tasks together
	TaskResources      map[string]*drover.Resources // by task
	SharedResources    *drover.Resources            // what belongs to no task: disk and group networks
	AllocatedResources *allocatedView
	NetworkStatus      *network.Status
	SigningKeyID       string // of the workload identities' key; there is none
}

// allocatedView adds the lifecycles, which Nomad has beside the resources of the tasks.
type allocatedView struct {
	*drover.AllocatedResources
	TaskLifecycles map[string]*drover.TaskLifecycle // null for a main task
}

// NewView derives the view of an allocation.
func NewView(a *drover.Allocation) *View {
	v := &View{Allocation: a, NetworkStatus: a.NetworkStatus}
	if v.NetworkStatus == nil && begun(a) { // on the host's own network
		v.NetworkStatus = &network.Status{}
	}
	held := a.AllocatedResources
	if held == nil {
		return v
	}
	v.AllocatedResources = &allocatedView{held, lifecycles(a)}
	v.SharedResources = &drover.Resources{DiskMB: int(held.Shared.DiskMB), Networks: held.Shared.Networks}
	v.Resources = &drover.Resources{DiskMB: v.SharedResources.DiskMB, Networks: v.SharedResources.Networks}
	v.TaskResources = map[string]*drover.Resources{}
	for name, t := range held.Tasks {
		r := &drover.Resources{
			CPU: int(t.Cpu.CpuShares), Cores: len(t.Cpu.ReservedCores), Networks: t.Networks,
			MemoryMB: int(t.Memory.MemoryMB), MemoryMaxMB: int(t.Memory.MemoryMaxMB),
		}
		v.TaskResources[name] = r
		v.Resources.CPU += r.CPU
		v.Resources.Cores += r.Cores
		v.Resources.MemoryMB += r.MemoryMB
		// A task without a maximum counts with its reservation, otherwise the sum would be smaller than what the
		// tasks may use.
		v.Resources.MemoryMaxMB += max(r.MemoryMB, r.MemoryMaxMB)
	}
	return v
}

// begun reports whether the node has set the allocation up: one that restarts a task is pending, too.
func begun(a *drover.Allocation) bool {
	if a.ClientStatus != drover.AllocClientPending {
		return true
	}
	for _, s := range a.TaskStates {
		if !s.StartedAt.IsZero() {
			return true
		}
	}
	return false
}

// lifecycles returns an entry for each task of the group; nil for a main task. It is empty, not nil, when the
// allocation has no job.
func lifecycles(a *drover.Allocation) map[string]*drover.TaskLifecycle {
	out := map[string]*drover.TaskLifecycle{}
	if a.Job == nil {
		return out
	}
	if g := a.Job.Group(a.TaskGroup); g != nil {
		for _, t := range g.Tasks {
			out[t.Name] = t.Lifecycle
		}
	}
	return out
}
