package scheduler

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/constraint"
	"github.com/drover-project/drover/device"
	"github.com/drover-project/drover/internal/control/scheduler/feasible"
)

// gpus is a group of devices with some memory, all healthy.
func gpus(model string, memory device.Attribute, ids ...string) *drover.NodeDeviceResource {
	d := &drover.NodeDeviceResource{Vendor: "nvidia", Type: "gpu", Name: model, Attributes: map[string]any{"memory": memory.Record()}}
	for _, id := range ids {
		d.Instances = append(d.Instances, &drover.NodeDevice{ID: id, Healthy: true})
	}
	return d
}

func deviceJob(id string, count int, want drover.RequestedDevice) *drover.Job {
	j := newJob(id, drover.JobTypeService, count)
	j.TaskGroups[0].Tasks[0].Resources = &drover.Resources{CPU: 1, MemoryMB: 1, Devices: []*drover.RequestedDevice{&want}}
	return j
}

// Constraints compare with units, and what is refused says what there is.
func TestDeviceUnits(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.addNode("n1", func(n *drover.Node) {
		n.NodeResources.Devices = []*drover.NodeDeviceResource{gpus("Tesla T4", device.Int(15360, "MiB"), "a", "b")}
		n.NodeResources.Devices[0].Instances[1].Healthy = false
	})
	for _, c := range []struct{ operand, value, refused string }{
		{">=", "15 GiB", ""},
		{"=", "15 GiB", ""},
		{"<", "16000 MiB", ""},
		{"!=", "15 W", ""},
		{"regexp", "MiB$", ""},
		{">=", "40 GiB", "missing devices: nvidia/gpu with ${device.attr.memory} >= 40 GiB (it is 15360 MiB of Tesla T4)"},
		{">=", "4", "missing devices: nvidia/gpu with ${device.attr.memory} >= 4 (it is 15360 MiB of Tesla T4)"},
	} {
		j := deviceJob("j", 1, drover.RequestedDevice{Name: "nvidia/gpu", Constraints: []*constraint.Constraint{
			{LTarget: "${device.attr.memory}", Operand: c.operand, RTarget: c.value},
		}})
		w.jobs["j"] = j
		out := Schedule(Input{Eval: &drover.Evaluation{ID: "e", Namespace: "default", JobID: "j"}, Snapshot: w, Now: w.now})
		if c.refused == "" {
			require.Len(t, placed(out), 1, c.value)
			continue
		}
		require.Equal(t, map[string]int{c.refused: 1}, out.Eval.FailedTGAllocs["g"].ConstraintFiltered)
	}
	w.putJob(deviceJob("two", 1, drover.RequestedDevice{Name: "gpu", Count: 2}))
	require.Equal(t, map[string]int{"missing devices: 2 of gpu (1 of 2 Tesla T4 are healthy)": 1},
		w.eval("two").Eval.FailedTGAllocs["g"].ConstraintFiltered)
}

// Affinities choose the node, and the group on it, as long as what is liked is free.
func TestDeviceAffinities(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.addNode("n1", func(n *drover.Node) {
		n.NodeResources.Devices = []*drover.NodeDeviceResource{
			gpus("small", device.Int(8, "GiB"), "s1", "s2"), gpus("big", device.Int(40, "GiB"), "b1"),
		}
	})
	w.addNode("n2", func(n *drover.Node) {
		n.NodeResources.Devices = []*drover.NodeDeviceResource{gpus("small", device.Int(8, "GiB"), "s3", "s4", "s5")}
	})
	w.putJob(deviceJob("j", 4, drover.RequestedDevice{Name: "gpu", Count: 1, Affinities: []*constraint.Affinity{
		{LTarget: "${device.attr.memory}", Operand: ">", RTarget: "10 GiB", Weight: 100},
	}}))
	all := placed(w.eval("j"))
	require.Len(t, all, 4)
	first := all[0]
	require.Equal(t, "n1", first.NodeID)
	require.Equal(t, []string{"b1"}, first.AllocatedResources.Tasks["t"].Devices[0].DeviceIDs)
	require.InDelta(t, 1.0, first.Metrics.ScoreMetaData[0].Scores["devices"], 0)
	require.NotContains(t, all[1].Metrics.ScoreMetaData[0].Scores, "devices", "the big one is taken")

	w = newWorld()
	w.addNode("n1", func(n *drover.Node) {
		memory := device.Int(8, "GiB")
		n.NodeResources.Devices = []*drover.NodeDeviceResource{gpus("a", memory, "1"), gpus("b", memory, "2")}
	})
	w.putJob(deviceJob("j", 1, drover.RequestedDevice{Name: "gpu", Affinities: []*constraint.Affinity{
		{LTarget: "${device.model}", Operand: "=", RTarget: "a", Weight: -50},
	}}))
	require.Equal(t, "b", placed(w.eval("j"))[0].AllocatedResources.Tasks["t"].Devices[0].Name, "a is disliked")
}

// Nothing is evicted for a job whose device is in use.
func TestNothingIsEvictedForADeviceInUse(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.config.PreemptionConfig.ServiceSchedulerEnabled = true
	w.addNode("n1", func(n *drover.Node) {
		n.NodeResources.Devices = []*drover.NodeDeviceResource{gpus("t4", device.Int(16, "GiB"), "a")}
	})
	job := func(id string, priority, memory int, devices ...*drover.RequestedDevice) {
		j := newJob(id, drover.JobTypeService, 1)
		j.Priority = priority
		j.TaskGroups[0].Tasks[0].Resources = &drover.Resources{CPU: 1, MemoryMB: memory, Devices: devices}
		w.putJob(j)
	}
	gpu := &drover.RequestedDevice{Name: "gpu", Count: 1}
	job("owner", 90, 100, gpu)
	job("cheap", 10, 8000)
	require.Len(t, placed(w.eval("owner")), 1)
	require.Len(t, placed(w.eval("cheap")), 1)
	w.settle()
	job("wants", 70, 1000, gpu)
	w.eval("wants")
	require.Len(t, w.live("cheap"), 1)
	job("plain", 70, 1000)
	w.eval("plain")
	require.Empty(t, w.live("cheap"), "without a device it goes as always")
}

// TestNoDeviceIsGivenTwice runs random jobs on random nodes beside a model that knows only who has what. No instance belongs to
// two live allocations, each is healthy and of the kind when it is given, and nobody waits while a node has enough.
func TestNoDeviceIsGivenTwice(t *testing.T) {
	t.Parallel()
	models := []string{"small", "big"}
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		for n := range rapid.IntRange(1, 3).Draw(t, "nodes") {
			w.addNode(fmt.Sprintf("n%d", n), func(node *drover.Node) {
				for _, model := range models {
					d := gpus(model, device.Int(8, "GiB"))
					for i := range rapid.IntRange(0, 3).Draw(t, model) {
						one := &drover.NodeDevice{ID: fmt.Sprint(model, i), Healthy: rapid.Bool().Draw(t, "healthy")}
						d.Instances = append(d.Instances, one)
					}
					node.NodeResources.Devices = append(node.NodeResources.Devices, d)
				}
			})
		}
		jobs := 0
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0, 1:
				jobs++
				count := uint64(rapid.IntRange(1, 3).Draw(t, "count"))
				name := rapid.SampledFrom([]string{"gpu", "nvidia/gpu/small", "nvidia/gpu/big"}).Draw(t, "name")
				want := drover.RequestedDevice{Name: name, Count: count}
				if rapid.Bool().Draw(t, "liking") {
					want.Affinities = []*constraint.Affinity{{LTarget: "${device.model}", Operand: "=", RTarget: "big", Weight: 50}}
				}
				id := fmt.Sprintf("j%d", jobs)
				w.putJob(deviceJob(id, rapid.IntRange(1, 3).Draw(t, "allocations"), want))
				before := given(t, w)
				out := w.eval(id)
				checkGiven(t, w, placed(out), name, count)
				given(t, w)
				if out.Eval.FailedTGAllocs["g"] != nil {
					require.False(t, enough(w, given(t, w), name, count), "it waits for what is there: %v, before %v", given(t, w), before)
				}
			case 2: // one ends
				for _, id := range w.created {
					if w.allocs[id].HoldsResources() {
						w.change(id, func(a *drover.Allocation) { a.ClientStatus = drover.AllocClientComplete })
						break
					}
				}
			case 3: // one falls ill, or is well again
				n := w.nodes["n0"]
				for _, d := range n.NodeResources.Devices {
					for _, i := range d.Instances[:min(1, len(d.Instances))] {
						i.Healthy = !i.Healthy
					}
				}
				n.ComputedClass = feasible.ComputedClass(n)
			}
		}
	})
}

// given is who has which device, by node and id; each has one owner.
func given(t *rapid.T, w *world) map[string]string {
	out := map[string]string{}
	for _, id := range slices.Sorted(maps.Keys(w.allocs)) {
		a := w.allocs[id]
		if !a.HoldsResources() {
			continue
		}
		for _, d := range a.AllocatedResources.Tasks["t"].Devices {
			for _, device := range d.DeviceIDs {
				key := a.NodeID + "/" + device
				require.Empty(t, out[key], "%s belongs to two", key)
				out[key] = id
			}
		}
	}
	return out
}

// checkGiven looks at new allocations: they have as many of one kind as were asked for, and all are well.
func checkGiven(t *rapid.T, w *world, all []*drover.Allocation, name string, count uint64) {
	for _, a := range all {
		got := a.AllocatedResources.Tasks["t"].Devices
		require.Len(t, got, 1)
		require.Len(t, got[0].DeviceIDs, int(count))
		require.True(t, name == "gpu" || name == "nvidia/gpu/"+got[0].Name)
		for _, d := range w.nodes[a.NodeID].NodeResources.Devices {
			for _, i := range d.Instances {
				if slices.Contains(got[0].DeviceIDs, i.ID) {
					require.True(t, i.Healthy && d.Name == got[0].Name)
				}
			}
		}
	}
}

// enough reports whether a node has as many free and healthy devices of one kind.
func enough(w *world, taken map[string]string, name string, count uint64) bool {
	for _, n := range w.nodes {
		for _, d := range n.NodeResources.Devices {
			free := uint64(0)
			for _, i := range d.Instances {
				if i.Healthy && taken[n.ID+"/"+i.ID] == "" && (name == "gpu" || name == "nvidia/gpu/"+d.Name) {
					free++
				}
			}
			if free >= count {
				return true
			}
		}
	}
	return false
}
