package leader_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/leader"
	"github.com/drover-project/drover/internal/control/planner"
	"github.com/drover-project/drover/internal/control/store"
)

// death has the leader die at an entry of plans.
type death struct {
	entry   int           // the number of the entry
	written bool          // it is in the log, which the leader is not told any more
	died    chan struct{} // closed then
}

// at reports whether the leader dies at this entry, and whether it is written.
func (d *death) at(k command.Kind, before int) (dies, written bool) {
	if d == nil || k != command.KindApplyPlans || before+1 != d.entry {
		return false, false
	}
	return true, d.written
}

// kill has the leader die as it is said; nil: another one leads.
func (l *memoryLog) kill(d *death) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.death, l.dead = d, false
}

// plans is how many entries of plans there were.
func (l *memoryLog) plans() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count[command.KindApplyPlans]
}

// slowDown has each entry of plans take so long.
func (l *memoryLog) slowDown(slow time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.slow = slow
}

func (l *memoryLog) plansTake() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.slow
}

// A plan of many allocations is committed in parts. When the leader dies between two, what was committed stays, and the evaluation
// goes on at the next leader with what is missing: nothing is placed twice, and nothing is forgotten.
func TestTheLeaderDiesBetweenThePartsOfAPlan(t *testing.T) {
	const nodes, each, wanted = 8, 3, 20 // a part has two nodes
	old := func(j *drover.Job) *drover.Job { j.TaskGroups[0].Tasks[0].Resources.CPU = 50; return j }
	plain := func(kind string) func() *drover.Job {
		return func() *drover.Job {
			j := testJob("j", kind, wanted)
			j.Update = &drover.UpdateStrategy{MaxParallel: new(0)}
			return j
		}
	}
	service := plain(drover.JobTypeService)
	for name, c := range map[string]struct {
		before, job func() *drover.Job
		deployed    bool
	}{
		"batch":   {job: plain(drover.JobTypeBatch)},
		"service": {job: service},
		"a deployment": {deployed: true, job: func() *drover.Job {
			j := service()
			j.Update = &drover.UpdateStrategy{MaxParallel: new(wanted)}
			return j
		}},
		"another version": {before: func() *drover.Job { return old(service()) }, job: service},
		"more of it":      {before: func() *drover.Job { j := service(); j.TaskGroups[0].Count = new(7); return j }, job: service},
	} {
		for entry := 1; entry <= 4; entry++ {
			for _, written := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s, entry %d, written %t", name, entry, written), func(t *testing.T) {
					bubble(t, func(t *testing.T) {
						l := newCluster(t, leader.Config{Plans: planner.Config{MaxAllocs: 2 * each}})
						for i := range nodes {
							l.agent(testNode(fmt.Sprint("n", i), 100*each+100), false)
						}
						if c.before != nil {
							l.register(c.before())
							l.until("the version before", func(s *store.Snapshot) bool {
								return len(l.allocs(s, "j", isRunning)) == *c.before().TaskGroups[0].Count
							})
						}
						d := &death{entry: l.log.plans() + entry, written: written, died: make(chan struct{})}
						l.log.kill(d)
						o := l.register(c.job())
						<-d.died
						l.stop()
						l.log.kill(nil)
						l.start()
						l.until("all run", func(s *store.Snapshot) bool {
							e, version := s.Evaluation(o.EvalID), s.Job(drover.DefaultNamespace, "j").Version
							newest := func(a *drover.Allocation) bool { return isRunning(a) && a.Job.Version == version }
							return e != nil && e.Terminal() && len(l.allocs(s, "j", newest)) == wanted &&
								len(l.allocs(s, "j", wantedPending)) == wanted
						})
						s := l.store.Snapshot()
						require.Contains(t, []string{drover.EvalComplete, drover.EvalCanceled}, s.Evaluation(o.EvalID).Status,
							"canceled if a newer one did its work")
						l.each(s, "j", wanted)
						if c.deployed {
							l.deployedOnce(s, "j", wanted)
						}
					})
				})
			}
		}
	}
}

// A worker has a minute for an evaluation. A plan of 100,000 allocations took longer on a machine that had little time for its
// server. Another worker got the evaluation, began on the state without the part that was just on its way, and placed those 2,266
// allocations once more.
func TestAPlanThatTakesLongIsNotMadeTwice(t *testing.T) {
	const nodes, each, wanted = 8, 3, 8 * 3 // all nodes are full, so that the parts are the same wherever the last ones go
	bubble(t, func(t *testing.T) {
		l := newCluster(t, leader.Config{Plans: planner.Config{MaxAllocs: 2 * each}})
		for i := range nodes {
			l.agent(testNode(fmt.Sprint("n", i), 100*each), false)
		}
		l.log.slowDown(50 * time.Second)
		o := l.register(testJob("j", drover.JobTypeBatch, wanted))
		l.until("all run", func(s *store.Snapshot) bool {
			e := s.Evaluation(o.EvalID)
			return e != nil && e.Terminal() && len(l.allocs(s, "j", isRunning)) >= wanted
		})
		l.each(l.store.Snapshot(), "j", wanted)
		require.Equal(t, 4, l.log.plans(), "each part once")
	})
}

// each requires that each of the job's names is placed once, at its newest version, and that no more was ever placed of that one.
func (c *cluster) each(s *store.Snapshot, jobID string, wanted int) {
	c.t.Helper()
	j := s.Job(drover.DefaultNamespace, jobID)
	names, placed := map[string]int{}, 0
	for a := range s.AllocationsByJob(drover.DefaultNamespace, jobID) {
		if a.Job.Version == j.Version {
			placed++
		}
		if !a.Terminal() {
			names[a.Name]++
			require.Equal(c.t, j.Version, a.Job.Version, a.Name)
		}
	}
	require.Len(c.t, names, wanted)
	for name, n := range names {
		require.Equal(c.t, 1, n, name)
	}
	require.Equal(c.t, wanted, placed, "what was placed before the leader died is not placed again")
	for n := range s.Nodes("") {
		ok, dimension := s.Used(n.ID).Fits(n.Total())
		require.True(c.t, ok, "%s of %s", dimension, n.ID)
	}
}

// deployedOnce requires that the job's only deployment counts all allocations.
func (c *cluster) deployedOnce(s *store.Snapshot, jobID string, wanted int) {
	c.t.Helper()
	n := 0
	for d := range s.Deployments("*", "") {
		if d.JobID == jobID {
			n++
			require.Equal(c.t, wanted, d.TaskGroups["g"].PlacedAllocs)
			require.Equal(c.t, wanted, d.TaskGroups["g"].DesiredTotal)
		}
	}
	require.Equal(c.t, 1, n)
}
