package leader

import (
	"context"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/store"
)

// GCConfig says how long things are kept after they ended. The zero value of a field means its default.
type GCConfig struct {
	Interval    time.Duration // how often to look; default 5 min
	Evals       time.Duration // evaluations and allocations; default 1 h
	BatchEvals  time.Duration // those of batch jobs; default Evals
	Jobs        time.Duration // dead jobs with all that is theirs; default 4 h
	Nodes       time.Duration // nodes that are down; default 24 h
	Deployments time.Duration // default 1 h
	// Runners is how many used up runners, and evaluations that filled its pool, an environment keeps, the newest, until
	// Evals; default 500. At ten thousand cycles a minute an hour's would be more than everything else together.
	Runners int
}

// withDefaults replaces what is not positive. CollectGarbage does not call it: its zero ages mean at once.
func (c GCConfig) withDefaults() GCConfig {
	for _, f := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&c.Interval, 5 * time.Minute},
		{&c.Evals, time.Hour},
		{&c.Jobs, 4 * time.Hour},
		{&c.Nodes, 24 * time.Hour},
		{&c.Deployments, time.Hour},
	} {
		if *f.field <= 0 {
			*f.field = f.value
		}
	}
	if c.BatchEvals <= 0 {
		c.BatchEvals = c.Evals
	}
	if c.Runners <= 0 {
		c.Runners = 500
	}
	return c
}

// evals is how long evaluations and allocations of jobs of the type are kept.
func (c GCConfig) evals(jobType string) time.Duration {
	if jobType == drover.JobTypeBatch {
		return c.BatchEvals
	}
	return c.Evals
}

// reapChunk bounds the ids in one entry.
const reapChunk = 5000

// CollectGarbage removes everything that ended, whatever its age. Errors: NotLeader.
func (l *Leader) CollectGarbage(ctx context.Context) error {
	log := l.currentLog()
	if log == nil {
		return drover.Errorf(drover.NotLeader, "this server does not lead")
	}
	return l.collect(ctx, log, GCConfig{})
}

// collectPeriodically collects by the configured ages until ctx ends. A failure is logged; the next interval tries
// again.
func (l *Leader) collectPeriodically(ctx context.Context, log Log) {
	for clock.Sleep(ctx, l.deps.Clock, l.cfg.GC.Interval) {
		if err := l.collect(ctx, log, l.cfg.GC); err != nil && ctx.Err() == nil {
			l.deps.Logger.Warn("cannot collect garbage", "error", err)
		}
	}
}

// collect proposes what is garbage by the ages; it returns the log's first error.
func (l *Leader) collect(ctx context.Context, log Log, ages GCConfig) error {
	return proposeAll(ctx, log, Garbage(l.deps.Store.Snapshot(), l.deps.Clock.Now(), ages))
}

// proposeAll commits the entries in their order and stops at the first error. What was committed before stays.
func proposeAll(ctx context.Context, log Log, entries []*command.Reap) error {
	for _, c := range entries {
		if _, _, err := log.Propose(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// Garbage says what may be forgotten at now: what ended longer ago than the ages, and what nothing refers to; in
// entries of a bounded size.
func Garbage(s *store.Snapshot, now time.Time, ages GCConfig) []*command.Reap {
	g := newCollector(s, now, ages)
	for j := range s.Jobs("*", "") {
		g.job(j)
		g.used(j)
	}
	for a := range s.Allocations("*", "") {
		g.alloc(a)
	}
	for e := range s.Evaluations("*", "") {
		g.eval(e)
	}
	for d := range s.Deployments("*", "") {
		g.deployment(d)
	}
	for n := range s.Nodes("") {
		g.node(n)
	}
	return chunks(g.reap)
}

// collector gathers garbage from one snapshot. Allocations are visited before evaluations, which stay while one of
// theirs is left.
type collector struct {
	s    *store.Snapshot
	now  time.Time
	ages GCConfig
	reap *command.Reap
	gone map[string]bool // allocations and evaluations that are reaped
	left map[string]bool // evaluations of which an allocation is left
}

// newCollector returns a collector that has found nothing yet.
func newCollector(s *store.Snapshot, now time.Time, ages GCConfig) *collector {
	return &collector{s: s, now: now, ages: ages, reap: &command.Reap{}, gone: map[string]bool{}, left: map[string]bool{}}
}

// old reports whether unix ns is longer ago than age.
func (g *collector) old(ns int64, age time.Duration) bool { return g.now.UnixNano()-ns >= int64(age) }

// job reaps a dead job with all that is its own: one that was stopped, or batch work that ended. A service that is dead
// because its allocations failed, or because it was scaled to none, is still wanted by somebody.
func (g *collector) job(j *drover.Job) {
	ends := j.Stop || j.EndsByItself() && !j.Periodical() && !j.Parameterized()
	if j.Status != drover.JobStatusDead || !ends || !g.old(j.SubmitTime, g.ages.Jobs) {
		return
	}
	var evals, allocs []string
	for e := range g.s.EvaluationsByJob(j.Namespace, j.ID) {
		if !e.Terminal() || !g.old(e.ModifyTime, g.ages.Jobs) {
			return
		}
		evals = append(evals, e.ID)
	}
	for a := range g.s.AllocationsByJob(j.Namespace, j.ID) {
		if !a.ClientTerminal() || !g.old(a.ModifyTime, g.ages.Jobs) {
			return
		}
		allocs = append(allocs, a.ID)
	}
	g.reap.Jobs = append(g.reap.Jobs, j.Key())
	for _, id := range evals {
		g.take(&g.reap.Evals, id)
	}
	for _, id := range allocs {
		g.take(&g.reap.Allocs, id)
	}
	for d := range g.s.DeploymentsByJob(j.Namespace, j.ID) {
		g.take(&g.reap.Deployments, d.ID)
	}
}

// take notes an id once: a dead job's allocations are found with the job, and again by themselves.
func (g *collector) take(list *[]string, id string) {
	if !g.gone[id] {
		g.gone[id] = true
		*list = append(*list, id)
	}
}

// alloc reaps an ended allocation that the scheduler no longer looks at.
func (g *collector) alloc(a *drover.Allocation) {
	if a.ClientTerminal() && g.old(a.ModifyTime, g.ages.evals(g.typeOf(a))) && g.forgettable(a) {
		g.take(&g.reap.Allocs, a.ID)
	}
	if !g.gone[a.ID] {
		g.left[a.EvalID] = true
	}
}

// typeOf is the type of the allocation's job.
func (g *collector) typeOf(a *drover.Allocation) string {
	if a.Job != nil {
		return a.Job.Type
	}
	return ""
}

// forgettable reports whether forgetting the allocation changes nothing for the scheduler: a finished one of a batch
// job counts as done, a failed one may be rescheduled yet.
func (g *collector) forgettable(a *drover.Allocation) bool {
	j := g.s.Job(a.Namespace, a.JobID)
	if j == nil || j.Stop || (a.Job != nil && j.CreateIndex > a.Job.CreateIndex) {
		return true
	}
	if group := j.Group(a.TaskGroup); group == nil || group.Pool != nil {
		return true
	}
	if j.EndsByItself() {
		return false
	}
	return a.ServerTerminal() || a.NextAllocation != ""
}

// eval reaps an evaluation of which no allocation is left.
func (g *collector) eval(e *drover.Evaluation) {
	if e.Terminal() && g.old(e.ModifyTime, g.ages.evals(e.Type)) && !g.left[e.ID] {
		g.take(&g.reap.Evals, e.ID)
	}
}

// deployment reaps one that is over, but not what says that the job's present version must not spread: without it the
// scheduler would begin the roll-out that failed once more.
func (g *collector) deployment(d *drover.Deployment) {
	if j := g.s.Job(d.Namespace, d.JobID); j != nil && !j.Stop && d.Status != drover.DeploymentSuccessful &&
		j.Version == d.JobVersion && j.CreateIndex == d.JobCreateIndex {
		return
	}
	if d.Active() || !g.old(d.ModifyTime, g.ages.Deployments) {
		return
	}
	for a := range g.s.AllocationsByJob(d.Namespace, d.JobID) {
		if a.DeploymentID == d.ID && !a.ClientTerminal() {
			return
		}
	}
	g.take(&g.reap.Deployments, d.ID)
}

// node reaps a node that has been down for long. One with unfinished allocations stays: the scheduler has still to mark
// them lost.
func (g *collector) node(n *drover.Node) {
	if n.Status != drover.NodeStatusDown || !g.old(n.StatusUpdatedAt*int64(time.Second), g.ages.Nodes) {
		return
	}
	// One such allocation is enough to keep the node.
	for range g.s.UnfinishedByNode(n.ID) {
		return
	}
	g.reap.Nodes = append(g.reap.Nodes, n.ID)
}

// chunks splits what is to be reaped into entries of a bounded size; none if there is nothing. Jobs go first: a batch
// job whose finished allocations were forgotten before it, if the rest is never committed, would run once more.
func chunks(r *command.Reap) []*command.Reap {
	var out []*command.Reap
	split(r.Jobs, func(ids []drover.NamespacedID) { out = append(out, &command.Reap{Jobs: ids}) })
	split(r.Allocs, func(ids []string) { out = append(out, &command.Reap{Allocs: ids}) })
	split(r.Evals, func(ids []string) { out = append(out, &command.Reap{Evals: ids}) })
	split(r.Deployments, func(ids []string) { out = append(out, &command.Reap{Deployments: ids}) })
	split(r.Nodes, func(ids []string) { out = append(out, &command.Reap{Nodes: ids}) })
	return out
}

// split hands the list on in parts of at most reapChunk.
func split[T any](list []T, f func([]T)) {
	for len(list) > 0 {
		n := min(len(list), reapChunk)
		f(list[:n])
		list = list[n:]
	}
}
