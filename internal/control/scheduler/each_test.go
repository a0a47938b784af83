package scheduler

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
)

// perAlloc makes the group's only volume one of which each allocation has its own.
func perAlloc(j *drover.Job, readOnly bool) *drover.Job {
	j.TaskGroups[0].Volumes = map[string]*drover.VolumeRequest{"v": {Type: "host", Source: "data", PerAlloc: true, ReadOnly: readOnly}}
	return j
}

// volumesOf makes a node that offers the volumes, and no others.
func volumesOf(names map[string]bool) func(*drover.Node) {
	return func(n *drover.Node) {
		n.HostVolumes = map[string]*drover.HostVolumeInfo{}
		for name, readOnly := range names {
			n.HostVolumes[name] = &drover.HostVolumeInfo{Path: "/srv/" + name, ReadOnly: readOnly}
		}
	}
}

// TestEachAllocationGoesWhereItsVolumeIs: nodes were looked for by the source alone, which no node has.
func TestEachAllocationGoesWhereItsVolumeIs(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.addNode("n0", volumesOf(map[string]bool{"data[1]": false}))
	w.addNode("n1", volumesOf(map[string]bool{"data[0]": false, "data[2]": true}))
	w.addNode("n2", volumesOf(map[string]bool{"data": false}))
	w.putJob(perAlloc(newJob("web", drover.JobTypeService, 3), false))
	out := w.eval("web")
	at := map[string]string{}
	for _, a := range placed(out) {
		at[a.Name] = a.NodeID
	}
	require.Equal(t, map[string]string{"web.g[0]": "n1", "web.g[1]": "n0"}, at, "the one of web.g[2] can't be written")
	m := out.Eval.FailedTGAllocs["g"]
	require.Equal(t, map[string]int{"missing compatible host volumes": 3}, m.ConstraintFiltered)
	require.Equal(t, 1, out.Eval.QueuedAllocations["g"])
	require.NotNil(t, placed(out)[0].Job.TaskGroups[0].Volumes["v"])
	require.True(t, placed(out)[0].Job.TaskGroups[0].Volumes["v"].PerAlloc, "the job is as it was")
}

// An allocation is where its own volume is, through losses and new versions. One waits only while no node that has its volume has
// room: a look at all nodes for each name says the same.
func TestAllocationsStayWithTheirVolumes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld()
		const count = 4
		for i := range rapid.IntRange(1, 4).Draw(rt, "nodes") {
			names := map[string]bool{}
			for k := range count + 1 {
				if rapid.Bool().Draw(rt, "has") {
					names[fmt.Sprintf("data[%d]", k)] = rapid.IntRange(0, 3).Draw(rt, "read only") == 0
				}
			}
			w.addNode(fmt.Sprintf("n%d", i), volumesOf(names))
		}
		readOnly := rapid.Bool().Draw(rt, "reads only")
		wanted := 0 // it only grows: with fewer, those that are there stay whatever their indexes
		for step := range rapid.IntRange(1, 8).Draw(rt, "steps") {
			wanted = rapid.IntRange(wanted, count).Draw(rt, "count")
			j := perAlloc(newJob("web", drover.JobTypeService, wanted), readOnly)
			if rapid.Bool().Draw(rt, "other work") {
				j.TaskGroups[0].Tasks[0].Env = map[string]string{"STEP": fmt.Sprint(step)}
			}
			w.putJob(j)
			if live := w.live("web"); len(live) > 0 && rapid.Bool().Draw(rt, "ends") {
				w.change(live[0].ID, func(a *drover.Allocation) { a.ClientStatus = drover.AllocClientComplete })
			}
			out := w.eval("web")
			w.settle()
			has := map[int]bool{}
			for _, a := range w.live("web") {
				require.True(rt, modelOffers(w.nodes[a.NodeID], a.Index(), readOnly), "%s on %s", a.Name, a.NodeID)
				require.False(rt, has[a.Index()], "%s is there twice", a.Name)
				has[a.Index()] = true
			}
			failed := 0
			for k := range wanted {
				somewhere := false
				for _, n := range w.nodes {
					somewhere = somewhere || modelOffers(n, k, readOnly)
				}
				require.Equal(rt, somewhere, has[k], "data[%d]", k)
				if !somewhere {
					failed++
				}
			}
			require.Equal(rt, failed, out.Eval.QueuedAllocations["g"])
		}
	})
}

// modelOffers reports whether the node has the volume of an index.
func modelOffers(n *drover.Node, index int, readOnly bool) bool {
	for name, have := range n.HostVolumes {
		if name == fmt.Sprintf("data[%d]", index) {
			return readOnly || !have.ReadOnly
		}
	}
	return false
}
