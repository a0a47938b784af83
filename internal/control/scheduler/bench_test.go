package scheduler

import (
	"fmt"
	"testing"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/constraint"
)

// benchWorld is the shape of Nomad's BenchmarkServiceScheduler: nodes over racks, one service job.
func benchWorld(nodes, racks, allocs int, spread bool) *world {
	w := newWorld()
	for i := range nodes {
		w.addNode(fmt.Sprintf("node-%05d", i), func(n *drover.Node) { n.Meta["rack"] = fmt.Sprintf("r%d", i%racks) })
	}
	j := newJob("bench", drover.JobTypeService, allocs)
	j.TaskGroups[0].Tasks[0].Resources = &drover.Resources{CPU: 100, MemoryMB: 100}
	if spread {
		j.Spreads = []*constraint.Spread{{Attribute: "${meta.rack}", Weight: 100}}
	}
	w.putJob(j)
	return w
}

func BenchmarkSchedule(b *testing.B) {
	for _, nodes := range []int{1000, 10_000} {
		for _, racks := range []int{50} {
			for _, allocs := range []int{1, 300, 1200} {
				for _, spread := range []bool{false, true} {
					b.Run(fmt.Sprintf("%dx%dx%dx%t", nodes, racks, allocs, spread), func(b *testing.B) {
						w := benchWorld(nodes, racks, allocs, spread)
						e := &drover.Evaluation{ID: "e", Namespace: "default", JobID: "bench"}
						b.ReportAllocs()
						seed := uint64(0)
						for b.Loop() {
							seed++
							out := Schedule(Input{Eval: e, Snapshot: w, Now: w.now, Seed: seed})
							if out.Explanation.Groups[0].Placed != allocs {
								b.Fatal(out.Explanation.Groups[0].Sentence)
							}
						}
						b.ReportMetric(float64(b.N*allocs)/b.Elapsed().Seconds(), "placements/s")
					})
				}
			}
		}
	}
}

// BenchmarkSpreadByNode is the shape of Nomad's issue 9451: as many spread values as nodes.
func BenchmarkSpreadByNode(b *testing.B) {
	w := benchWorld(10_000, 50, 1200, false)
	w.jobs["bench"].Spreads = []*constraint.Spread{{Attribute: "${node.unique.id}", Weight: 100}}
	e := &drover.Evaluation{ID: "e", Namespace: "default", JobID: "bench"}
	for b.Loop() {
		Schedule(Input{Eval: e, Snapshot: w, Now: w.now, Seed: 1})
	}
	b.ReportMetric(float64(b.N*1200)/b.Elapsed().Seconds(), "placements/s")
}
