package insight_test

import (
	"iter"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/control/insight"
)

// herd is a state of nodes.
type herd struct {
	nodes []*drover.Node
	used  drover.Capacity
}

func (herd) TableIndex(table string) uint64 { return uint64(len(table)) }

func (h herd) NodesUsed() iter.Seq2[*drover.Node, drover.Capacity] {
	return func(yield func(*drover.Node, drover.Capacity) bool) {
		for _, n := range h.nodes {
			if !yield(n, h.used) {
				return
			}
		}
	}
}

func (herd) UnfinishedCount(nodeID string) int { return len(nodeID) }

// TestTheTopologySaysWhatMattersMost: each node has one state, shares are of what allocations may have, and the layout changes when a
// node comes, goes or moves, and not by what it does.
func TestTheTopologySaysWhatMattersMost(t *testing.T) {
	t.Parallel()
	node := func(id, pool, status, eligibility string, drains bool) *drover.Node {
		return &drover.Node{
			ID: id, Name: "n" + id, NodePool: pool, Datacenter: "dc1", Status: status, SchedulingEligibility: eligibility, Drain: drains,
			NodeResources: &drover.NodeResources{
				Cpu: drover.NodeCpuResources{CpuShares: 1100}, Memory: drover.NodeMemoryResources{MemoryMB: 1000},
			},
			ReservedResources: &drover.NodeReservedResources{Cpu: drover.NodeReservedCpuResources{CpuShares: 100}},
		}
	}
	h := herd{used: drover.Capacity{CPU: 999, MemoryMB: 1}, nodes: []*drover.Node{
		node("1", "b", drover.NodeStatusReady, drover.NodeEligible, false), node("2", "a", drover.NodeStatusDown, drover.NodeIneligible, true),
		node("3", "a", drover.NodeStatusReady, drover.NodeIneligible, true), node("4", "a", drover.NodeStatusReady, drover.NodeIneligible, false),
		node("5", "a", drover.NodeStatusDisconnected, drover.NodeEligible, false),
		node("6", "a", drover.NodeStatusInit, drover.NodeEligible, false),
		{ID: "7", NodePool: "c", Status: drover.NodeStatusReady, SchedulingEligibility: drover.NodeEligible}, // it says nothing of itself
	}}
	top := insight.TopologyOf(h)
	require.Equal(t, []string{"2", "3", "4", "5", "6", "1", "7"}, top.IDs)
	require.Equal(t, "xdiabrr", top.States)
	require.Equal(t, []string{"a", "b", "c"}, top.Pools)
	require.Equal(t, []int{0, 0, 0, 0, 0, 1, 2}, top.Pool)
	require.Equal(t, []int{99, 99, 99, 99, 99, 99, 0}, top.CPU, "of what is not reserved")
	require.Equal(t, []int{1, 1, 1, 1, 1, 1, 0}, top.Memory, "something is not nothing")
	require.Equal(t, []int{1, 1, 1, 1, 1, 1, 1}, top.Allocations)
	require.EqualValues(t, 6, top.Index)

	layout := func(change func(nodes []*drover.Node) []*drover.Node) string {
		var nodes []*drover.Node
		for _, n := range h.nodes {
			nodes = append(nodes, new(*n))
		}
		return insight.TopologyOf(herd{nodes: change(nodes), used: h.used}).Layout
	}
	require.Equal(t, top.Layout, layout(func(n []*drover.Node) []*drover.Node { n[0].Status = drover.NodeStatusDown; return n }))
	require.Equal(t, top.Layout, layout(func(n []*drover.Node) []*drover.Node { slices.Reverse(n); return n }))
	require.NotEqual(t, top.Layout, layout(func(n []*drover.Node) []*drover.Node { n[0].NodePool, n[0].Datacenter = "bd", "c1"; return n }))
	require.NotEqual(t, top.Layout, layout(func(n []*drover.Node) []*drover.Node { return n[1:] }))

	require.Empty(t, top.Without().IDs)
	require.Equal(t, top.States, top.Without().States)
	says := func(letter byte) string {
		return map[byte]string{cluster.NodeGone: "Down", cluster.NodeReady: "ready"}[letter]
	}
	require.Equal(t, []int{0}, top.Find(" A down", says))
	require.Equal(t, []int{5, 6}, top.Find("ready", says))
	require.Len(t, top.Find("", says), 7)
	_, err := top.Groups("rack")
	require.Error(t, err)
	require.Empty(t, insight.TopologyOf(herd{}).States)
}
