package leader

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/tables"
)

const (
	// runnerRest is how long a used up runner stays in the state in any case. Who asks for it later is still told that it
	// ended, by the execution service, which remembers more of them for less.
	runnerRest = 15 * time.Second
	// usedInterval is how often environments are looked at for what was used up in them.
	usedInterval = 10 * time.Second
)

// collectUsed forgets runners that were used up, much sooner than other things that ended, while allocations change.
func (l *Leader) collectUsed(ctx context.Context, log Log) {
	for {
		changed := l.deps.Store.Watch(tables.Allocs, "")
		if !clock.Sleep(ctx, l.deps.Clock, usedInterval) {
			return
		}
		if err := proposeAll(ctx, log, Used(l.deps.Store.Snapshot(), l.deps.Clock.Now(), l.cfg.GC)); err != nil && ctx.Err() == nil {
			l.deps.Logger.Warn("cannot forget used runners", "error", err)
		}
		if !clock.Await(ctx, l.deps.Clock, clock.Forever, changed) { // an idle server is not woken
			return
		}
	}
}

// Used is the part of Garbage that comes of claims: runners that were used up, and evaluations that filled their pools,
// but for the newest.
func Used(s *store.Snapshot, now time.Time, ages GCConfig) []*command.Reap {
	g := newCollector(s, now, ages)
	for j := range s.Jobs("*", "") {
		g.used(j)
	}
	return chunks(g.reap)
}

// used reaps what an environment has too much of.
func (g *collector) used(j *drover.Job) {
	if !slices.ContainsFunc(j.TaskGroups, func(t *drover.TaskGroup) bool { return t.Pool != nil }) {
		return
	}
	var allocs []ended
	for a := range g.s.AllocationsByJob(j.Namespace, j.ID) {
		over := a.Claim != nil || a.ServerTerminal() // the claim of one that was released at once may not have been recorded
		if over && a.ClientTerminal() && g.old(a.ModifyTime, runnerRest) && g.forgettable(a) {
			allocs = append(allocs, ended{a.ID, a.ModifyTime})
		}
	}
	g.takeOldest(&g.reap.Allocs, allocs)
	left := map[string]bool{} // evaluations of which an allocation is left
	for a := range g.s.AllocationsByJob(j.Namespace, j.ID) {
		if !g.gone[a.ID] {
			left[a.EvalID] = true
		}
	}
	var evals []ended
	for e := range g.s.EvaluationsByJob(j.Namespace, j.ID) {
		if e.Terminal() && !left[e.ID] && g.old(e.ModifyTime, runnerRest) {
			evals = append(evals, ended{e.ID, e.ModifyTime})
		}
	}
	g.takeOldest(&g.reap.Evals, evals)
}

// ended is something that ended at unix ns.
type ended struct {
	id string
	at int64
}

// takeOldest reaps all but the newest.
func (g *collector) takeOldest(into *[]string, list []ended) {
	if len(list) <= g.ages.Runners {
		return
	}
	slices.SortFunc(list, func(x, y ended) int { return cmp.Or(cmp.Compare(y.at, x.at), cmp.Compare(x.id, y.id)) })
	for _, e := range list[g.ages.Runners:] {
		g.take(into, e.id)
	}
}
