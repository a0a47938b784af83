package nomad

import (
	"time"

	"github.com/drover-project/drover"
)

// The views show nouns under all the names that Nomad's answers have. What a name repeats is made here, when somebody
// asks, and nowhere kept.

// allocationView is an allocation with what its resources were called before AllocatedResources: Nomad's own command
// line still reads those names.
type allocationView struct {
	*drover.Allocation
	Resources          *drover.Resources            // of all tasks together
	TaskResources      map[string]*drover.Resources // by task
	SharedResources    *drover.Resources            // what belongs to no task: disk and group networks
	AllocatedResources *allocatedView
	NetworkStatus      *drover.AllocNetworkStatus
	SigningKeyID       string // of the workload identities' key; there is none
}

type allocatedView struct {
	*drover.AllocatedResources
	TaskLifecycles map[string]*drover.TaskLifecycle // null for a main task
}

func viewAllocation(a *drover.Allocation) *allocationView {
	v := &allocationView{Allocation: a, NetworkStatus: a.NetworkStatus}
	if v.NetworkStatus == nil && begun(a) { // on the host's own network
		v.NetworkStatus = &drover.AllocNetworkStatus{}
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

// queryMeta is what some of Nomad's answers say of themselves.
type queryMeta struct {
	Index       uint64
	LastContact int64 // ns since the leader was heard; this is the leader
	KnownLeader bool
	NextToken   string // of lists that come in pages; this is none
}

// poolView is a node pool; what people write as "720h" is a number in answers.
type poolView struct {
	*drover.NodePool
	NodeIdentityTTL time.Duration
}

func viewPool(p *drover.NodePool) *poolView {
	ttl, _ := time.ParseDuration(p.NodeIdentityTTL) // checked when it was written; "" is none
	return &poolView{p, ttl}
}
