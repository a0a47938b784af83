package scheduler

import (
	"encoding/binary"
	"hash/fnv"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/id"
)

// deps is what every step reads.
type deps struct {
	in             Input
	snapshot       Snapshot
	job            *drover.Job // nil if unknown
	now            time.Time
	rng            *rand.Rand
	ids            id.Source
	matcher        *matcher
	oversubscribed bool
	spreadFit      bool
}

// run is one call of Schedule.
type run struct {
	*deps
	plan        *drover.Plan
	deployments deployments
	stage       *stage
	kept        []*drover.Allocation // what of the job's allocations stays after the plan
	boards      []*board
	followUps   []*drover.Evaluation
	failed      map[string]*drover.AllocationMetric
	slowed      string // why placements were put off by the brake
	queued      map[string]int
	annotations map[string]*drover.DesiredUpdates
	groups      []GroupExplanation
	nodes       map[string]*drover.Node
	updateKinds map[updateKey]updateKind
}

// Schedule answers one evaluation. A job that is unknown or stopped gets all its allocations stopped.
func Schedule(in Input) Output {
	r := newRun(in)
	switch {
	case r.job.Stopped():
		r.stopAll()
	case r.job.Periodical() || r.job.Parameterized():
	case r.job.Type == drover.JobTypeSystem || r.job.Type == drover.JobTypeSysBatch:
		r.scheduleSystem()
	default:
		r.scheduleGroups()
	}
	return r.output()
}

func newRun(in Input) *run {
	seed := mixSeed(in)
	d := &deps{
		in: in, snapshot: in.Snapshot, now: in.Now, job: in.Snapshot.Job(in.Eval.Namespace, in.Eval.JobID),
		rng: rand.New(rand.NewPCG(seed, 0x5ced)), ids: id.NewSeeded(seed), matcher: newMatcher(),
	}
	if c := in.Snapshot.SchedulerConfig(); c != nil {
		d.spreadFit = c.SchedulerAlgorithm == drover.SchedulerSpread
		d.oversubscribed = c.MemoryOversubscriptionEnabled
	}
	if d.job != nil {
		d.readPool()
	}
	return &run{
		deps: d, failed: map[string]*drover.AllocationMetric{}, queued: map[string]int{},
		annotations: map[string]*drover.DesiredUpdates{}, nodes: map[string]*drover.Node{},
		updateKinds: map[updateKey]updateKind{},
		plan: &drover.Plan{
			EvalID: in.Eval.ID, Priority: in.Eval.Priority, Job: d.job, SnapshotIndex: in.Snapshot.Index(),
			AllAtOnce: d.job != nil && d.job.AllAtOnce, NodeUpdate: map[string][]*drover.Allocation{},
			NodeAllocation: map[string][]*drover.Allocation{}, NodePreemptions: map[string][]*drover.Allocation{},
		},
	}
}

// readPool lets the job's node pool override the cluster's configuration.
func (d *deps) readPool() {
	p := d.snapshot.NodePool(d.job.NodePool)
	if p == nil || p.SchedulerConfiguration == nil {
		return
	}
	if a := p.SchedulerConfiguration.SchedulerAlgorithm; a != "" {
		d.spreadFit = a == drover.SchedulerSpread
	}
	if m := p.SchedulerConfiguration.MemoryOversubscriptionEnabled; m != nil {
		d.oversubscribed = *m
	}
}

// mixSeed makes a seed that differs for every evaluation, attempt and state, so that no id comes twice.
func mixSeed(in Input) uint64 {
	h := fnv.New64a()
	var b [24]byte
	binary.LittleEndian.PutUint64(b[0:], in.Seed)
	binary.LittleEndian.PutUint64(b[8:], uint64(in.Attempt))
	binary.LittleEndian.PutUint64(b[16:], in.Snapshot.Index())
	h.Write(b[:])
	h.Write([]byte(in.Eval.ID))
	return h.Sum64()
}

// allocations yields the job's allocations, if possible without those that are of no more interest. Of work that is done
// once, what was stopped and ended is: it may count as done.
func (r *run) allocations() iter.Seq[*drover.Allocation] {
	if fast, ok := r.snapshot.(ActiveAllocations); ok && (r.job == nil || !r.job.EndsByItself()) {
		return fast.ActiveAllocationsByJob(r.in.Eval.Namespace, r.in.Eval.JobID)
	}
	return r.snapshot.AllocationsByJob(r.in.Eval.Namespace, r.in.Eval.JobID)
}

// node looks a node up once.
func (r *run) node(id string) *drover.Node {
	n, seen := r.nodes[id]
	if !seen {
		n = r.snapshot.Node(id)
		r.nodes[id] = n
	}
	return n
}

// lost reports whether nothing can be known of what runs on the node.
func (r *run) lost(nodeID string) bool {
	n := r.node(nodeID)
	return n == nil || n.Status == drover.NodeStatusDown || n.Status == drover.NodeStatusDisconnected
}

// theStage builds the stage when it is first needed.
func (r *run) theStage() *stage {
	if r.stage == nil {
		r.stage = newStage(r.snapshot, r.job, r.rng)
		for _, a := range r.kept {
			if i := r.stage.find(a.NodeID); i >= 0 {
				r.stage.nodes[i].jobAllocs++
			}
		}
	}
	return r.stage
}

// desiredCount is how many allocations the group should have.
func desiredCount(g *drover.TaskGroup) int {
	switch {
	case g.Pool != nil:
		return g.Pool.Size + g.Pool.Demand
	case g.Count == nil:
		return 1
	}
	return *g.Count
}

// updates returns the group's counts for annotations.
func (r *run) updates(group string) *drover.DesiredUpdates {
	u := r.annotations[group]
	if u == nil {
		u = &drover.DesiredUpdates{}
		r.annotations[group] = u
	}
	return u
}
