package scheduler

import (
	"cmp"
	"math/rand/v2"

	"github.com/drover-project/drover"
)

// candidate is a node that the job may use at all: ready, in its pool and datacenters.
type candidate struct {
	node      *drover.Node
	total     drover.Capacity
	used      drover.Capacity // what allocations hold, and what this plan places
	class     int32           // index into stage.classes; -1 for a node without a computed class
	order     uint32          // shuffled; breaks ties
	jobAllocs int32           // live allocations of the job, after this plan
	hold      *hold           // ports, cores and devices; nil until somebody asks
	evict     *evictable      // what could become free; nil until somebody asks
}

// stage lists the candidates. It is built when the first group wants to place something.
type stage struct {
	nodes     []candidate
	index     map[string]int32
	classes   []string
	inPool    int
	available map[string]int // ready nodes by datacenter
}

// newStage walks all nodes once.
func newStage(s Snapshot, job *drover.Job, rng *rand.Rand) *stage {
	st := &stage{available: map[string]int{}}
	classes := map[string]int32{}
	datacenters := map[string]bool{}
	add := func(n *drover.Node, used func() drover.Capacity) {
		if !inPool(job, n) {
			return
		}
		st.inPool++
		fits, seen := datacenters[n.Datacenter]
		if !seen {
			fits = matchesAny(job.Datacenters, n.Datacenter)
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
	return st
}

// inPool reports whether the job may use nodes of n's pool. No name means the default pool.
func inPool(job *drover.Job, n *drover.Node) bool {
	return job.NodePool == drover.AllNodePool ||
		cmp.Or(job.NodePool, drover.DefaultNodePool) == cmp.Or(n.NodePool, drover.DefaultNodePool)
}

// find returns the candidate's index, or -1 if the node is none.
func (st *stage) find(nodeID string) int32 {
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
