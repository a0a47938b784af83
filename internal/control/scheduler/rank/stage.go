package rank

import (
	"iter"
	"math/rand/v2"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/scheduler/feasible"
	"github.com/drover-project/drover/internal/control/scheduler/grant"
	"github.com/drover-project/drover/volume"
)

// Snapshot is what the ranking reads. Values read are never changed.
type Snapshot interface {
	Nodes(prefix string) iter.Seq[*drover.Node]
	Node(id string) *drover.Node
	AllocationsByNode(nodeID string) iter.Seq[*drover.Allocation]
	Used(nodeID string) drover.Capacity
	Job(namespace, id string) *drover.Job
	VolumeClaimsOn(volumeID string) iter.Seq[*volume.HostVolumeClaim]
}

// NodeUsage is an optional power of a Snapshot: all nodes, in an order that repeats, with what allocations hold on
// each. It saves a look-up a node.
type NodeUsage interface {
	NodesUsed() iter.Seq2[*drover.Node, drover.Capacity]
}

// UnfinishedAllocations is an optional power of a Snapshot: a node's allocations without those that the node reported
// as ended, so that looking at a node costs nothing for what was there before.
type UnfinishedAllocations interface {
	UnfinishedByNode(nodeID string) iter.Seq[*drover.Allocation]
}

// unfinishedOn yields the node's allocations, if possible without ended ones.
func unfinishedOn(s Snapshot, nodeID string) iter.Seq[*drover.Allocation] {
	if fast, ok := s.(UnfinishedAllocations); ok {
		return fast.UnfinishedByNode(nodeID)
	}
	return s.AllocationsByNode(nodeID)
}

// candidate is a node that the job may use at all: ready, in its pool and datacenters.
type candidate struct {
	node      *drover.Node
	total     drover.Capacity
	used      drover.Capacity // what allocations hold, and what this plan places
	class     int32           // index into Stage.classes; -1 for a node without a computed class
	order     uint32          // shuffled; breaks ties
	jobAllocs int32           // live allocations of the job, after this plan
	hold      *grant.Hold     // ports, cores and devices; nil until somebody asks
	writers   *writers        // who writes host volumes; nil until somebody asks
	evict     *evictable      // what could become free; nil until somebody asks
}

// Stage lists the candidates: the nodes that the job may use at all. The boards of all its groups share one, so that what
// one group takes is gone for the next.
type Stage struct {
	nodes     []candidate
	index     map[string]int32
	classes   []string
	inPool    int
	available map[string]int // ready nodes by datacenter
}

// NewStage walks all nodes once. kept are the job's allocations that stay; rng says which of equal nodes comes first.
func NewStage(s Snapshot, job *drover.Job, rng *rand.Rand, kept []*drover.Allocation) *Stage {
	st := &Stage{available: map[string]int{}}
	classes := map[string]int32{}
	datacenters := map[string]bool{}
	add := func(n *drover.Node, used func() drover.Capacity) {
		if !feasible.InPool(job, n) {
			return
		}
		st.inPool++
		fits, seen := datacenters[n.Datacenter]
		if !seen {
			fits = feasible.InDatacenter(job, n.Datacenter)
			datacenters[n.Datacenter] = fits
		}
		if !fits || !n.Ready() {
			return
		}
		class, seen := classes[n.ComputedClass]
		if !seen {
			class = -1
			if n.ComputedClass != "" {
				class = int32(len(st.classes))
				st.classes = append(st.classes, n.ComputedClass)
			}
			classes[n.ComputedClass] = class
		}
		st.available[n.Datacenter]++
		st.nodes = append(st.nodes, candidate{node: n, total: n.Total(), used: used(), class: class})
	}
	if fast, ok := s.(NodeUsage); ok {
		for n, used := range fast.NodesUsed() {
			add(n, func() drover.Capacity { return used })
		}
	} else {
		for n := range s.Nodes("") {
			add(n, func() drover.Capacity { return s.Used(n.ID) })
		}
	}
	for i, p := range rng.Perm(len(st.nodes)) {
		st.nodes[i].order = uint32(p)
	}
	for _, a := range kept {
		if i := st.find(a.NodeID); i >= 0 {
			st.nodes[i].jobAllocs++
		}
	}
	return st
}

// find returns the candidate's index, or -1 if the node is none.
func (st *Stage) find(nodeID string) int32 {
	if st.index == nil {
		st.index = make(map[string]int32, len(st.nodes))
		for i := range st.nodes {
			st.index[st.nodes[i].node.ID] = int32(i)
		}
	}
	if i, ok := st.index[nodeID]; ok {
		return i
	}
	return -1
}
