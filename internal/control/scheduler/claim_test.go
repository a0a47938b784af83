package scheduler

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/volume"
)

// claim does what the state does: who is placed has the volumes of its node, and whatever replaces it has the same.
func (w *world) claim(out Output) {
	for _, a := range placed(out) {
		for _, r := range a.Job.TaskGroups[0].Volumes {
			if !r.Sticky {
				continue
			}
			name := r.SourceOf(a.Index())
			have := w.nodes[a.NodeID].HostVolumes[name]
			found := false
			for _, c := range w.claims {
				if c.JobID == a.JobID && c.AllocName == a.Name && c.VolumeName == name {
					c.VolumeID, c.AllocID, found = have.ID, a.ID, true
				}
			}
			if !found {
				w.claims = append(w.claims, &volume.HostVolumeClaim{
					ID: fmt.Sprint("claim-", len(w.claims)), Namespace: "default", JobID: a.JobID, TaskGroupName: "g", AllocID: a.ID, AllocName: a.Name,
					VolumeID: have.ID, VolumeName: name,
				})
			}
		}
	}
}

func sticky(id string, count int, mode string) *drover.Job {
	return mounting(id, count, drover.VolumeRequest{AccessMode: mode, Sticky: true})
}

// What replaces an allocation waits for the node that has its volume, and does not take another allocation's.
func TestAReplacementHasTheSameVolume(t *testing.T) {
	t.Parallel()
	w := newWorld()
	for _, id := range []string{"n0", "n1"} {
		w.addNode(id, nil)
		w.dynamic(id, drover.AccessSingleWriter)
	}
	w.putJob(sticky("db", 2, drover.AccessSingleWriter))
	out := w.eval("db")
	w.claim(out)
	require.Len(t, placed(out), 2)
	w.settle()
	first := w.live("db")[0]
	w.status(first.NodeID, drover.NodeStatusDown)
	out = w.eval("db")
	require.Empty(t, placed(out))
	other := map[string]string{"n0": "n1", "n1": "n0"}[first.NodeID]
	require.Equal(t, map[string]int{fmt.Sprintf("missing compatible host volumes: data is not the volume v-%s that %s has (claim %s)",
		first.NodeID, first.Name, w.claims[0].ID): 1}, out.Eval.FailedTGAllocs["g"].ConstraintFiltered, "of %s", other)
	w.status(first.NodeID, drover.NodeStatusReady)
	out = w.eval("db")
	require.Len(t, placed(out), 1)
	require.Equal(t, []string{first.Name, first.NodeID}, []string{placed(out)[0].Name, placed(out)[0].NodeID})
	w.settle()

	// One that ended leaves its volume to its replacement, though another one has waited for it for long.
	w.putJob(sticky("db", 3, drover.AccessSingleWriter))
	w.eval("db")
	require.Len(t, w.live("db"), 2)
	w.change(w.live("db")[0].ID, func(a *drover.Allocation) { a.ClientStatus = drover.AllocClientComplete })
	out = w.eval("db")
	require.Len(t, placed(out), 1)
	require.NotEqual(t, "db.g[2]", placed(out)[0].Name)
	require.Contains(t, fmt.Sprint(out.Eval.FailedTGAllocs["g"].DimensionExhausted), "by claim claim-")
}

// A claimed volume waits for its allocation, and no other job writes it meanwhile, unless the job that has it is stopped.
func TestNoOtherJobTakesAClaimedVolume(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.addNode("n0", nil)
	w.dynamic("n0", drover.AccessSingleWriter)
	w.putJob(sticky("db", 1, drover.AccessSingleWriter))
	w.claim(w.eval("db"))
	w.settle()
	w.status("n0", drover.NodeStatusDown)
	w.eval("db")
	w.status("n0", drover.NodeStatusReady)
	w.putJob(mounting("thief", 1, drover.VolumeRequest{AccessMode: drover.AccessSingleWriter}))
	out := w.eval("thief")
	require.Empty(t, placed(out))
	require.Equal(t, map[string]int{"host volume data (it is that of db.g[0] by claim claim-0; single-node-single-writer)": 1},
		out.Eval.FailedTGAllocs["g"].DimensionExhausted)
	stopped := sticky("db", 1, drover.AccessSingleWriter)
	stopped.Stop = true
	w.putJob(stopped)
	require.Len(t, placed(w.eval("thief")), 1, "such as one that mends the data")
	w.settle()
	w.putJob(sticky("db", 1, drover.AccessSingleWriter))
	require.Empty(t, placed(w.eval("db")), "it writes still")
}

// Over new versions, ends, losses and returns, all allocations of a name have the one volume that the first of them had, also
// where each has a volume of its own name. None writes alone beside another, and what waits could be nowhere.
func TestAllocationsStickToTheirVolumes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld()
		perAlloc := rapid.Bool().Draw(rt, "per alloc")
		for i := range rapid.IntRange(1, 4).Draw(rt, "nodes") {
			id := fmt.Sprintf("n%d", i)
			w.addNode(id, nil)
			w.dynamic(id, drover.AccessSingleWriter, drover.AccessMultiWriter)
			if perAlloc {
				w.nodes[id].HostVolumes = map[string]*drover.HostVolumeInfo{
					fmt.Sprintf("data[%d]", rapid.IntRange(0, 2).Draw(rt, "index")): w.nodes[id].HostVolumes["data"],
				}
			}
		}
		has := map[string]string{} // the volume of each name
		wanted := 0
		for range rapid.IntRange(1, 20).Draw(rt, "steps") {
			switch rapid.SampledFrom([]string{"register", "register", "ends", "down", "up", "settle", "evaluate"}).Draw(rt, "what") {
			case "register":
				wanted = rapid.IntRange(wanted, 4).Draw(rt, "count")
				j := sticky("db", wanted, rapid.SampledFrom([]string{drover.AccessSingleWriter, drover.AccessMultiWriter}).Draw(rt, "mode"))
				j.TaskGroups[0].Volumes["v"].PerAlloc = perAlloc
				j.TaskGroups[0].Tasks[0].Env = map[string]string{"A": fmt.Sprint(rapid.IntRange(0, 1).Draw(rt, "env"))}
				w.putJob(j)
			case "ends":
				if live := w.live("db"); len(live) > 0 {
					w.change(rapid.SampledFrom(live).Draw(rt, "which").ID, func(a *drover.Allocation) { a.ClientStatus = drover.AllocClientComplete })
				}
			case "down":
				w.status(rapid.SampledFrom(w.order).Draw(rt, "node"), drover.NodeStatusDown)
			case "up":
				w.status(rapid.SampledFrom(w.order).Draw(rt, "node"), drover.NodeStatusReady)
			case "settle":
				w.settle()
			}
			if w.jobs["db"] == nil {
				continue
			}
			out := w.eval("db")
			w.claim(out)
			w.checkWriters(rt)
			for _, a := range placed(out) {
				if has[a.Name] == "" {
					has[a.Name] = "v-" + a.NodeID
				}
				require.Equal(rt, has[a.Name], "v-"+a.NodeID, a.Name)
			}
			w.checkWaiting(rt, has, out)
		}
	})
}

// checkWaiting: for each name that has no allocation each node says why, by a look at all that is there.
func (w *world) checkWaiting(t *rapid.T, has map[string]string, out Output) {
	if out.Eval.QueuedAllocations["g"] == 0 {
		return
	}
	r := w.jobs["db"].TaskGroups[0].Volumes["v"]
	there := map[string]bool{}
	for _, a := range w.live("db") {
		there[a.Name] = true
	}
	alone := r.AccessMode == drover.AccessSingleWriter
	for i := range *w.jobs["db"].TaskGroups[0].Count {
		name := fmt.Sprintf("db.g[%d]", i)
		for _, node := range w.order {
			_, named := w.nodes[node].HostVolumes[r.SourceOf(i)]
			owned := has[name] != "" && has[name] != "v-"+node
			for other, v := range has {
				owned = owned || alone && other != name && has[name] == "" && v == "v-"+node
			}
			require.False(t, !there[name] && named && !owned && w.modelRoom(node, r), "%s waits, and could be on %s", name, node)
		}
	}
}
