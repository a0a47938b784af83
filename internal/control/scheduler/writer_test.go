package scheduler

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/volume"
)

// dynamic gives the node a dynamic volume "data" with the modes. Its id is that of the node.
func (w *world) dynamic(node string, modes ...string) {
	v := &volume.HostVolume{ID: "v-" + node, Name: "data", Namespace: "default", NodeID: node, State: volume.HostVolumeReady}
	for _, m := range modes {
		v.RequestedCapabilities = append(v.RequestedCapabilities, &volume.HostVolumeCapability{
			AccessMode: m, AttachmentMode: drover.AttachFileSystem,
		})
	}
	w.volumes[v.ID] = v
	n := new(*w.nodes[node])
	n.HostVolumes = map[string]*drover.HostVolumeInfo{"data": {
		ID: v.ID, Path: "/v/" + v.ID, Report: &drover.HostVolumeReport{Namespace: "default"},
	}}
	w.nodes[node] = n
}

// mounting is a small job that mounts the volume "data".
func mounting(id string, count int, r drover.VolumeRequest) *drover.Job {
	j := newJob(id, drover.JobTypeService, count)
	j.TaskGroups[0].Tasks[0].Resources = &drover.Resources{CPU: 1, MemoryMB: 1}
	r.Type, r.Source = "host", "data"
	j.TaskGroups[0].Volumes = map[string]*drover.VolumeRequest{"v": &r}
	return j
}

// A second writer waits until the node says that the first one ended, and is told whom it waits for. Readers do not wait.
func TestASecondWriterWaits(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.addNode("n0", nil)
	w.dynamic("n0", drover.AccessSingleWriter)
	w.putJob(mounting("db", 1, drover.VolumeRequest{AccessMode: drover.AccessSingleWriter}))
	require.Len(t, placed(w.eval("db")), 1)
	w.settle()
	w.putJob(mounting("web", 1, drover.VolumeRequest{AccessMode: drover.AccessSingleWriter}))
	out := w.eval("web")
	require.Empty(t, placed(out))
	require.Equal(t, map[string]int{
		`host volume data (job "db" writes it; single-node-single-writer)`: 1,
	}, out.Eval.FailedTGAllocs["g"].DimensionExhausted)
	w.putJob(mounting("report", 2, drover.VolumeRequest{AccessMode: drover.AccessSingleWriter, ReadOnly: true}))
	require.Len(t, placed(w.eval("report")), 2)
	w.putJob(mounting("plain", 1, drover.VolumeRequest{}))
	require.Equal(t, map[string]int{
		"missing compatible host volumes: data has no capability with access_mode single-node-writer and attachment_mode file-system": 1,
	}, w.eval("plain").Eval.FailedTGAllocs["g"].ConstraintFiltered)

	// A new version of the first one ends it, and comes after it.
	next := mounting("db", 1, drover.VolumeRequest{AccessMode: drover.AccessSingleWriter})
	next.TaskGroups[0].Tasks[0].Env = map[string]string{"A": "1"}
	w.putJob(next)
	out = w.eval("db")
	require.Empty(t, placed(out))
	require.Len(t, out.Plan.NodeUpdate["n0"], 1, "the old one is stopped")
	require.Empty(t, placed(w.eval("web")), "it writes until the node says that it ended")
	w.settle()
	require.Len(t, placed(w.eval("db")), 1)
	require.Empty(t, placed(w.eval("web")))
}

// modelRefuses is Nomad's table of modes.
func modelRefuses(v *volume.HostVolume, r *drover.VolumeRequest) bool {
	mode := r.AccessMode
	if mode == "" && r.ReadOnly {
		mode = "single-node-reader-only"
	} else if mode == "" {
		mode = "single-node-writer"
	}
	for _, c := range v.RequestedCapabilities {
		if c.AccessMode == mode {
			return mode == "single-node-reader-only" && !r.ReadOnly || mode == "single-node-writer" && r.ReadOnly
		}
	}
	return true
}

// requestOf is how an allocation mounts the volume.
func requestOf(a *drover.Allocation) *drover.VolumeRequest { return a.Job.TaskGroups[0].Volumes["v"] }

// modelRoom reports whether an allocation with the request could be on the node, by looking at all that is there.
func (w *world) modelRoom(node string, r *drover.VolumeRequest) bool {
	n := w.nodes[node]
	if n.Status != drover.NodeStatusReady || modelRefuses(w.volumes["v-"+node], r) {
		return false
	}
	for _, a := range w.allocs {
		if o := requestOf(a); a.NodeID == node && !a.ClientTerminal() && !o.ReadOnly && !r.ReadOnly &&
			(o.AccessMode == "single-node-single-writer" || r.AccessMode == "single-node-single-writer") {
			return false
		}
	}
	return true
}

// checkWriters: who writes a volume alone is alone.
func (w *world) checkWriters(t require.TestingT) {
	for node := range w.nodes {
		var writers []string
		alone := false
		for _, id := range w.created {
			if a := w.allocs[id]; a.NodeID == node && !a.ClientTerminal() && !requestOf(a).ReadOnly {
				writers = append(writers, a.Name+" "+id)
				alone = alone || requestOf(a).AccessMode == drover.AccessSingleWriter
			}
		}
		require.True(t, !alone || len(writers) == 1, "%s: %q", node, writers)
	}
}

// drawMounting draws a job's next version.
func drawMounting(t *rapid.T, id string) *drover.Job {
	modes := []string{
		"", drover.AccessReader, drover.AccessWriter, drover.AccessSingleWriter, drover.AccessSingleWriter, drover.AccessMultiWriter,
	}
	r := drover.VolumeRequest{AccessMode: rapid.SampledFrom(modes).Draw(t, "mode"), ReadOnly: rapid.IntRange(0, 3).Draw(t, "reads") == 0}
	r.ReadOnly = r.ReadOnly || r.AccessMode == drover.AccessReader
	j := mounting(id, rapid.IntRange(0, 3).Draw(t, "count"), r)
	j.TaskGroups[0].Tasks[0].Env = map[string]string{"A": fmt.Sprint(rapid.IntRange(0, 1).Draw(t, "env"))}
	j.Stop = rapid.IntRange(0, 7).Draw(t, "stop") == 0
	return j
}

// Whatever comes, new versions, ends, stops, losses and returns of nodes, no two write a volume where one of them is to be alone, and
// nothing waits that could be somewhere.
func TestOneWritesAlone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld()
		all := []string{drover.AccessReader, drover.AccessWriter, drover.AccessSingleWriter, drover.AccessMultiWriter}
		for i := range rapid.IntRange(1, 3).Draw(rt, "nodes") {
			id := fmt.Sprintf("n%d", i)
			w.addNode(id, nil)
			w.dynamic(id, rapid.SliceOfNDistinct(rapid.SampledFrom(all), 1, 4, rapid.ID).Draw(rt, "modes")...)
		}
		jobs := []string{"a", "b", "c"}
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			job := rapid.SampledFrom(jobs).Draw(rt, "job")
			switch rapid.SampledFrom([]string{"register", "ends", "down", "up", "settle", "evaluate"}).Draw(rt, "what") {
			case "register":
				w.putJob(drawMounting(rt, job))
			case "ends":
				if live := w.live(job); len(live) > 0 {
					w.change(live[0].ID, func(a *drover.Allocation) { a.ClientStatus = drover.AllocClientComplete })
				}
			case "down":
				w.status(rapid.SampledFrom(w.order).Draw(rt, "node"), drover.NodeStatusDown)
			case "up":
				w.status(rapid.SampledFrom(w.order).Draw(rt, "node"), drover.NodeStatusReady)
			case "settle":
				w.settle()
			}
			for _, id := range jobs {
				if w.jobs[id] == nil {
					continue
				}
				out := w.eval(id)
				w.checkWriters(rt)
				if out.Eval.QueuedAllocations["g"] > 0 {
					r := w.jobs[id].TaskGroups[0].Volumes["v"]
					require.False(rt, slices.ContainsFunc(w.order, func(n string) bool { return w.modelRoom(n, r) }), "%s waits", id)
				}
			}
		}
	})
}
