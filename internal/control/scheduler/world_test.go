package scheduler

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/scheduler/feasible"
	"github.com/drover-project/drover/volume"
)

// world is the literal state that tests schedule against; apply commits plans to it.
type world struct {
	index       uint64
	now         time.Time
	jobs        map[string]*drover.Job
	versions    map[string][]*drover.Job // newest first
	nodes       map[string]*drover.Node
	order       []string // node ids, sorted
	allocs      map[string]*drover.Allocation
	created     []string // allocation ids in order of creation
	evals       map[string]*drover.Evaluation
	deployments map[string]*drover.Deployment
	pools       map[string]*drover.NodePool
	config      *drover.SchedulerConfiguration
	used        map[string]drover.Capacity
	quick       drover.QuickEnds
	byNode      map[string][]string
	volumes     map[string]*volume.HostVolume
	claims      []*volume.HostVolumeClaim
}

func newWorld() *world {
	return &world{
		index: 100, now: time.Unix(1_800_000_000, 0).UTC(), jobs: map[string]*drover.Job{},
		versions: map[string][]*drover.Job{},
		nodes:    map[string]*drover.Node{}, allocs: map[string]*drover.Allocation{},
		evals: map[string]*drover.Evaluation{}, deployments: map[string]*drover.Deployment{},
		pools:  map[string]*drover.NodePool{},
		config: &drover.SchedulerConfiguration{SchedulerAlgorithm: drover.SchedulerBinpack},
		used:   map[string]drover.Capacity{}, byNode: map[string][]string{}, volumes: map[string]*volume.HostVolume{},
	}
}

func (w *world) Index() uint64                                   { return w.index }
func (w *world) QuickEnds(_, _ string) drover.QuickEnds          { return w.quick }
func (w *world) Job(_, id string) *drover.Job                    { return w.jobs[id] }
func (w *world) JobVersions(_, id string) []*drover.Job          { return w.versions[id] }
func (w *world) Node(id string) *drover.Node                     { return w.nodes[id] }
func (w *world) NodePool(name string) *drover.NodePool           { return w.pools[name] }
func (w *world) SchedulerConfig() *drover.SchedulerConfiguration { return w.config }
func (w *world) HostVolume(id string) *volume.HostVolume         { return w.volumes[id] }
func (w *world) VolumeClaimsOf(_, jobID, _ string) iter.Seq[*volume.HostVolumeClaim] {
	return w.claimed(func(c *volume.HostVolumeClaim) bool { return c.JobID == jobID })
}

func (w *world) VolumeClaimsOn(id string) iter.Seq[*volume.HostVolumeClaim] {
	return w.claimed(func(c *volume.HostVolumeClaim) bool { return c.VolumeID == id })
}

func (w *world) claimed(keep func(*volume.HostVolumeClaim) bool) iter.Seq[*volume.HostVolumeClaim] {
	return slices.Values(slices.DeleteFunc(slices.Clone(w.claims), func(c *volume.HostVolumeClaim) bool { return !keep(c) }))
}

func (w *world) Used(nodeID string) drover.Capacity { return w.used[nodeID] }
func (w *world) Nodes(string) iter.Seq[*drover.Node] {
	return func(yield func(*drover.Node) bool) {
		for _, id := range w.order {
			if !yield(w.nodes[id]) {
				return
			}
		}
	}
}

func (w *world) AllocationsByJob(_, id string) iter.Seq[*drover.Allocation] {
	return func(yield func(*drover.Allocation) bool) {
		for _, aid := range w.created {
			if a := w.allocs[aid]; a.JobID == id && !yield(a) {
				return
			}
		}
	}
}

func (w *world) AllocationsByNode(nodeID string) iter.Seq[*drover.Allocation] {
	return func(yield func(*drover.Allocation) bool) {
		for _, aid := range w.byNode[nodeID] {
			if !yield(w.allocs[aid]) {
				return
			}
		}
	}
}

func (w *world) EvaluationsByJob(_, id string) iter.Seq[*drover.Evaluation] {
	return func(yield func(*drover.Evaluation) bool) {
		for _, eid := range slices.Sorted(maps.Keys(w.evals)) {
			if e := w.evals[eid]; e.JobID == id && !yield(e) {
				return
			}
		}
	}
}

func (w *world) DeploymentsByJob(_, id string) iter.Seq[*drover.Deployment] {
	return func(yield func(*drover.Deployment) bool) {
		for _, did := range slices.Sorted(maps.Keys(w.deployments)) {
			if d := w.deployments[did]; d.JobID == id && !yield(d) {
				return
			}
		}
	}
}

// addNode puts a node of 4000 MHz, 8 GiB and 100 GB.
func (w *world) addNode(id string, edit func(*drover.Node)) *drover.Node {
	n := &drover.Node{
		ID: id, Name: id, Datacenter: "dc1", NodePool: "default", Status: drover.NodeStatusReady,
		SchedulingEligibility: drover.NodeEligible, Attributes: map[string]string{"kernel.name": "linux"},
		Meta: map[string]string{}, Drivers: map[string]*drover.DriverInfo{"fake": {Detected: true, Healthy: true}},
		NodeResources: &drover.NodeResources{
			Cpu:    drover.NodeCpuResources{CpuShares: 4000, TotalCpuCores: 4, ReservableCpuCores: []uint16{0, 1, 2, 3}},
			Memory: drover.NodeMemoryResources{MemoryMB: 8192}, Disk: drover.NodeDiskResources{DiskMB: 100_000},
		},
	}
	if edit != nil {
		edit(n)
	}
	n.ComputedClass = feasible.ComputedClass(n)
	if w.nodes[id] == nil {
		i, _ := slices.BinarySearch(w.order, id)
		w.order = slices.Insert(w.order, i, id)
	}
	w.nodes[id] = n
	return n
}

func newJob(id, kind string, count int) *drover.Job {
	return &drover.Job{
		ID: id, Name: id, Namespace: "default", Type: kind, Priority: 50, Datacenters: []string{"*"},
		NodePool: "default", TaskGroups: []*drover.TaskGroup{{
			Name: "g", Count: new(count), EphemeralDisk: &drover.EphemeralDisk{SizeMB: 300},
			Tasks: []*drover.Task{{
				Name: "t", Driver: "fake", Config: map[string]any{},
				Resources: &drover.Resources{CPU: 500, MemoryMB: 256},
			}},
		}},
	}
}

// putJob stores a job as its next version.
func (w *world) putJob(j *drover.Job) {
	w.index++
	j.CreateIndex, j.Version = w.index, 0
	if old := w.jobs[j.ID]; old != nil {
		j.CreateIndex, j.Version = old.CreateIndex, old.Version+1
	}
	j.ModifyIndex, j.JobModifyIndex = w.index, w.index
	w.jobs[j.ID] = j
	w.versions[j.ID] = append([]*drover.Job{j}, w.versions[j.ID]...)
}

// stabilize marks a job's version as one that works. Allocations keep the older copy, as in the store.
func (w *world) stabilize(jobID string, version uint64) {
	list := slices.Clone(w.versions[jobID])
	for i, v := range list {
		if v.Version != version {
			continue
		}
		list[i] = new(*v)
		list[i].Stable = true
		if w.jobs[jobID] == v {
			w.jobs[jobID] = list[i]
		}
	}
	w.versions[jobID] = list
}

// eval schedules a job once and commits the plan.
func (w *world) eval(jobID string) Output { return w.evalFor(jobID, drover.TriggerJobRegister) }

// evalFor is eval for a reason.
func (w *world) evalFor(jobID, trigger string) Output {
	w.index++
	e := &drover.Evaluation{
		ID: fmt.Sprintf("eval-%d", w.index), Namespace: "default", JobID: jobID, Priority: 50,
		Status: drover.EvalPending, TriggeredBy: trigger,
	}
	if trigger == drover.TriggerQueuedAllocs {
		e.Status = drover.EvalBlocked
	}
	return w.evalAs(e)
}

func (w *world) evalAs(e *drover.Evaluation) Output {
	out := Schedule(Input{Eval: e, Snapshot: w, Now: w.now, Seed: 7})
	w.apply(out)
	return out
}

func (w *world) apply(out Output) {
	w.index++
	for _, m := range []map[string][]*drover.Allocation{out.Plan.NodeUpdate, out.Plan.NodePreemptions, out.Plan.NodeAllocation} {
		for _, node := range slices.Sorted(maps.Keys(m)) {
			for _, a := range m[node] {
				w.put(a)
			}
		}
	}
	if d := out.Plan.Deployment; d != nil {
		if old := w.deployments[d.ID]; old == nil {
			d.CreateIndex = w.index
		}
		w.deployments[d.ID] = d
	}
	for _, u := range out.Plan.DeploymentUpdates {
		d := new(*w.deployments[u.DeploymentID])
		d.Status, d.StatusDescription = u.Status, u.StatusDescription
		w.deployments[d.ID] = d
		if d.Status == drover.DeploymentSuccessful {
			w.stabilize(d.JobID, d.JobVersion)
		}
	}
	for _, e := range append(out.NewEvals, out.Eval) {
		w.evals[e.ID] = e
	}
}

// put stores an allocation and keeps the counts.
func (w *world) put(a *drover.Allocation) {
	old := w.allocs[a.ID]
	if old == nil {
		a.CreateIndex = w.index
		w.created = append(w.created, a.ID)
		w.byNode[a.NodeID] = append(w.byNode[a.NodeID], a.ID)
		if p := w.allocs[a.PreviousAllocation]; p != nil {
			p = new(*p)
			p.NextAllocation = a.ID
			w.allocs[p.ID] = p
		}
	} else if old.HoldsResources() {
		w.used[a.NodeID] = w.used[a.NodeID].Sub(old.AllocatedResources.Used())
	}
	if a.HoldsResources() {
		w.used[a.NodeID] = w.used[a.NodeID].Add(a.AllocatedResources.Used())
	}
	w.allocs[a.ID] = a
}

// change edits a copy of an allocation.
func (w *world) change(id string, edit func(*drover.Allocation)) {
	a := new(*w.allocs[id])
	edit(a)
	w.put(a)
}

// settle lets the nodes do what is wanted: what should run runs, what should stop is complete.
func (w *world) settle() {
	for _, id := range w.created {
		a := w.allocs[id]
		n := w.nodes[a.NodeID]
		if a.ClientTerminal() || n == nil || n.Status != drover.NodeStatusReady {
			continue
		}
		w.change(id, func(a *drover.Allocation) {
			a.ClientStatus = drover.AllocClientRunning
			if a.ServerTerminal() {
				a.ClientStatus = drover.AllocClientComplete
			}
		})
	}
}

// live returns the allocations of a job that run or will run.
func (w *world) live(jobID string) []*drover.Allocation {
	var out []*drover.Allocation
	for a := range w.AllocationsByJob("default", jobID) {
		if !a.Terminal() {
			out = append(out, a)
		}
	}
	return out
}
