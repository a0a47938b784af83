package insight

import (
	"cmp"
	"encoding/binary"
	"hash/fnv"
	"iter"
	"slices"
	"strconv"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/tables"
)

// NodesState is the snapshot that a topology is made of.
type NodesState interface {
	TableIndex(table string) uint64
	// NodesUsed yields each node with what its allocations hold.
	NodesUsed() iter.Seq2[*drover.Node, drover.Capacity]
	// UnfinishedCount is how many allocations of the node have not ended.
	UnfinishedCount(nodeID string) int
}

// TopologyIndex is the index of the topology of a state.
func TopologyIndex(s NodesState) uint64 {
	return max(s.TableIndex(tables.Nodes), s.TableIndex(tables.Allocs), 1)
}

// TopologyOf says where the nodes of a state are, how they are, and how full.
func TopologyOf(s NodesState) *cluster.Topology {
	type place struct {
		node *drover.Node
		used drover.Capacity
	}
	var places []place
	for n, used := range s.NodesUsed() {
		places = append(places, place{n, used})
	}
	slices.SortFunc(places, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.node.NodePool, b.node.NodePool), cmp.Compare(a.node.Datacenter, b.node.Datacenter),
			cmp.Compare(a.node.NodeClass, b.node.NodeClass), cmp.Compare(a.node.Name, b.node.Name), cmp.Compare(a.node.ID, b.node.ID))
	})
	t := &cluster.Topology{Index: TopologyIndex(s), CPU: []int{}, Memory: []int{}, Allocations: []int{}}
	pools, datacenters, classes, layout := numbering{}, numbering{}, numbering{}, fnv.New64a()
	states := make([]byte, 0, len(places))
	for _, p := range places {
		n, total := p.node, p.node.Total()
		for _, text := range []string{n.ID, n.Name, n.NodePool, n.Datacenter, n.NodeClass} {
			_, _ = layout.Write(binary.BigEndian.AppendUint32(nil, uint32(len(text))))
			_, _ = layout.Write([]byte(text))
		}
		t.IDs, t.Names = append(t.IDs, n.ID), append(t.Names, n.Name)
		t.Pool, t.Datacenter = append(t.Pool, pools.of(n.NodePool)), append(t.Datacenter, datacenters.of(n.Datacenter))
		t.Class = append(t.Class, classes.of(n.NodeClass))
		states = append(states, stateOf(n))
		t.CPU = append(t.CPU, percent(p.used.CPU, total.CPU))
		t.Memory = append(t.Memory, percent(p.used.MemoryMB, total.MemoryMB))
		t.Allocations = append(t.Allocations, s.UnfinishedCount(n.ID))
	}
	t.States, t.Pools, t.Datacenters, t.Classes = string(states), pools.names, datacenters.names, classes.names
	t.Layout = strconv.FormatUint(layout.Sum64(), 36)
	return t
}

// numbering gives each name a number, in the order in which they come.
type numbering struct {
	names []string
	known map[string]int
}

func (n *numbering) of(name string) int {
	at, known := n.known[name]
	if !known {
		if n.known == nil {
			n.known = map[string]int{}
		}
		at = len(n.names)
		n.known[name], n.names = at, append(n.names, name)
	}
	return at
}

// percent is a share, rounded down so that 100 is full; what holds something holds 1 at least. Of nothing it is 0.
func percent(used, total int64) int {
	switch {
	case used <= 0 || total <= 0:
		return 0
	case used < total/100:
		return 1
	}
	return int(used * 100 / total)
}

// stateOf is the letter of what matters most of a node.
func stateOf(n *drover.Node) byte {
	switch n.Condition() {
	case drover.NodeStatusDown:
		return cluster.NodeGone
	case drover.NodeStatusDisconnected:
		return cluster.NodeAway
	case drover.NodeStatusReady:
		return cluster.NodeReady
	case drover.NodeIneligible:
		return cluster.NodeIneligible
	case drover.NodeDraining:
		return cluster.NodeDraining
	}
	return cluster.NodeBegins
}
