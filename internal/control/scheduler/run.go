package scheduler

import (
	"encoding/binary"
	"hash/fnv"
	"iter"
	"math/rand/v2"
	"slices"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/scheduler/draft"
	"github.com/drover-project/drover/internal/control/scheduler/feasible"
	"github.com/drover-project/drover/internal/control/scheduler/rank"
	"github.com/drover-project/drover/internal/control/scheduler/reconcile"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/quota"
)

// run is one call of Schedule.
type run struct {
	*draft.Draft

	in         Input
	snapshot   Snapshot
	reconciler *reconcile.Reconciler
	terms      rank.Terms
	stage      *rank.Stage          // nil until the first group places something
	account    *quota.Account       // of the job's namespace, with what the plan adds; nil: no limit
	kept       []*drover.Allocation // what of the job's allocations stays after the plan
	boards     []*rank.Board
	failed     map[string]*drover.AllocationMetric // by group
	unfit      map[string]*drover.AllocationMetric // by group of a system job: why no node can run it. Nobody waits for room
	queued     map[string]int                      // by group
	groups     []GroupExplanation
}

// Schedule answers one evaluation. A job that is unknown or stopped gets all its allocations stopped.
func Schedule(in Input) Output {
	r := newRun(in)
	switch {
	case r.Job.Stopped():
		r.stopAll()
	case r.Job.Periodical() || r.Job.Parameterized():
	case r.Job.Type == drover.JobTypeSystem || r.Job.Type == drover.JobTypeSysBatch:
		r.placeSystem()
	default:
		changes := r.reconciler.Groups(r.allocations())
		for _, c := range changes {
			r.kept = append(r.kept, c.Kept...)
		}
		for _, c := range changes {
			r.perform(c)
		}
	}
	return r.output()
}

func newRun(in Input) *run {
	seed := mixSeed(in)
	job := in.Snapshot.Job(in.Eval.Namespace, in.Eval.JobID)
	matcher := feasible.NewMatcher()
	d := draft.New(in.Snapshot, in.Eval, job, in.Now, id.NewSeeded(seed))
	r := &run{
		Draft: d, in: in, snapshot: in.Snapshot, reconciler: reconcile.New(d, in.Snapshot, matcher),
		terms: rank.Terms{
			Snapshot: in.Snapshot, Job: job, Random: rand.New(rand.NewPCG(seed, 0x5ced)), Matcher: matcher,
			Volumes: feasible.Volumes{Get: in.Snapshot.HostVolume},
		},
		failed: map[string]*drover.AllocationMetric{}, unfit: map[string]*drover.AllocationMetric{}, queued: map[string]int{},
	}
	if c := in.Snapshot.SchedulerConfig(); c != nil {
		r.terms.SpreadFit = c.SchedulerAlgorithm == drover.SchedulerSpread
		r.terms.Oversubscribed = c.MemoryOversubscriptionEnabled
	}
	if job != nil {
		r.account = quota.AccountOf(in.Snapshot, job.Namespace)
		r.readPool()
	}
	return r
}

// readPool lets the job's node pool override the cluster's configuration.
func (r *run) readPool() {
	p := r.snapshot.NodePool(r.Job.NodePool)
	if p == nil || p.SchedulerConfiguration == nil {
		return
	}
	if a := p.SchedulerConfiguration.SchedulerAlgorithm; a != "" {
		r.terms.SpreadFit = a == drover.SchedulerSpread
	}
	if m := p.SchedulerConfiguration.MemoryOversubscriptionEnabled; m != nil {
		r.terms.Oversubscribed = *m
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

// stopAll ends all that the job has; nothing of it is queued any more.
func (r *run) stopAll() {
	if r.Job != nil {
		for _, g := range r.Job.TaskGroups {
			r.queued[g.Name] = 0
		}
	}
	r.reconciler.StopAll(r.allocations())
}

// allocations yields the job's allocations, if possible without those that are of no more interest. Of work that is done
// once, what was stopped and ended is: it may count as done.
func (r *run) allocations() iter.Seq[*drover.Allocation] {
	if fast, ok := r.snapshot.(ActiveAllocations); ok && (r.Job == nil || !r.Job.EndsByItself()) {
		return fast.ActiveAllocationsByJob(r.in.Eval.Namespace, r.in.Eval.JobID)
	}
	return r.snapshot.AllocationsByJob(r.in.Eval.Namespace, r.in.Eval.JobID)
}

// board ranks the nodes for a group of a version of the job, or for the allocation of the name where the group's allocations have different
// volumes. The first call lists the nodes.
func (r *run) board(version *drover.Job, g *drover.TaskGroup, name string) *rank.Board {
	if r.stage == nil {
		r.stage = rank.NewStage(r.snapshot, r.Job, r.terms.Random, r.kept)
	}
	terms := r.terms
	terms.Job = version
	if name != "" {
		terms.Volumes.Name, terms.Volumes.Claims = name, slices.Collect(r.snapshot.VolumeClaimsOf(r.Job.Namespace, r.Job.ID, g.Name))
	}
	return rank.NewBoard(terms, r.stage, g, r.kept)
}
