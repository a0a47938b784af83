package fsm

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

// A million allocations that each had its own copy of their node's id, twice, and of its name would take 150 MB more.
func TestAllocationsShareTheTextsOfTheirNode(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := node("n1")
	first.Node.Name, first.Node.NodePool = "first", "gpu"
	b.do(first)
	j := b.do(register(job("web", "service", 1))).(*drover.Job)
	a := placed("a1", "web")
	a.NodeName = "first"
	a.Metrics = &drover.AllocationMetric{
		NodePool: "gpu", ScoreMetaData: []*drover.NodeScoreMeta{{NodeID: "n1", NormScore: 0.5}, {NodeID: "n2"}},
	}
	b.do(plan(j, a))
	n, got := b.now().Node("n1"), b.now().Allocation("a1")
	require.Equal(t, a.Metrics, got.Metrics)
	for _, texts := range [][2]string{
		{n.ID, got.NodeID}, {n.Name, got.NodeName}, {n.NodePool, got.Metrics.NodePool}, {n.ID, got.Metrics.ScoreMetaData[0].NodeID},
	} {
		require.Equal(t, texts[0], texts[1])
		require.Same(t, unsafe.StringData(texts[0]), unsafe.StringData(texts[1]))
	}
}
