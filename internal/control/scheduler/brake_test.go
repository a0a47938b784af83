package scheduler

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

// TestNoPolicyMakesAStorm: whatever a job's policies, work that fails at once is begun ever more seldom, the evaluation
// says so, and a person's change begins anew.
func TestNoPolicyMakesAStorm(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*drover.TaskGroup){
		"no delay": func(g *drover.TaskGroup) {
			g.ReschedulePolicy = &drover.ReschedulePolicy{Delay: new(time.Duration(0)), DelayFunction: "constant", Unlimited: new(true)}
		},
		"canaries": func(g *drover.TaskGroup) {
			g.ReschedulePolicy = &drover.ReschedulePolicy{Delay: new(time.Duration(0)), DelayFunction: "constant", Unlimited: new(true)}
			g.Update = &drover.UpdateStrategy{MaxParallel: new(50), Canary: 3}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			for i := range 4 {
				w.addNode(fmt.Sprintf("n%d", i), nil)
			}
			const count = 8
			j := newJob("web", drover.JobTypeService, count)
			edit(j.TaskGroups[0])
			w.putJob(j)
			w.eval("web")
			slowed := ""
			for began := w.now; w.now.Sub(began) < 10*time.Minute; {
				w.now = w.now.Add(100 * time.Millisecond)
				failed := w.failAll(&w.quick)
				out := w.evalFor("web", drover.TriggerRetryFailedAlloc)
				if strings.HasPrefix(out.Eval.StatusDescription, "slowed: ") {
					slowed = out.Eval.StatusDescription
					require.Empty(t, placed(out))
					require.NotEmpty(t, w.waiting(), "somebody looks again")
				}
				if failed == 0 { // nothing happens before the follow-up's time
					if at := w.waiting(); len(at) > 0 && at[0].After(w.now) {
						w.now = at[0]
					}
				}
			}
			// Waves of 1, 2, 4 … 60 s, then one a minute: less than 20 in ten minutes, beside the first two.
			require.LessOrEqual(t, len(w.created), 20*(count+3), "allocations in ten minutes")
			require.Contains(t, slowed, "ended within a second of their start; the next begin at 2027-")

			again := newJob("web", drover.JobTypeService, count)
			again.Version, again.JobModifyIndex = 1, w.index+1
			again.TaskGroups[0].Tasks[0].Env = map[string]string{"A": "b"}
			edit(again.TaskGroups[0])
			w.putJob(again)
			w.quick = drover.QuickEnds{} // as the state machine does with a registration
			require.NotEmpty(t, placed(w.eval("web")), "what somebody changed is tried at once")
		})
	}
}

// storm is a kind of work whose allocations all end at once.
type storm struct {
	kind  string
	count int
	edit  func(*drover.TaskGroup)
	ends  string
	most  int // allocations in ten minutes
}

// stormNodes is how many nodes there are.
const stormNodes = 4

func storms() map[string]storm {
	const nodes = stormNodes
	atOnce := &drover.ReschedulePolicy{Delay: new(time.Duration(0)), DelayFunction: "constant", Unlimited: new(true)}
	rollout := &drover.UpdateStrategy{MaxParallel: new(50), Canary: 3}
	return map[string]storm{
		// Two waves at once, then after 1, 2, 4 … 60 s.
		"service that fails": {
			drover.JobTypeService, 200, func(g *drover.TaskGroup) { g.ReschedulePolicy, g.Update = atOnce, rollout },
			drover.AllocClientFailed, 17 * 203,
		},
		"service that ends": {
			drover.JobTypeService, 200, func(g *drover.TaskGroup) { g.ReschedulePolicy, g.Update = atOnce, rollout },
			drover.AllocClientComplete, 17 * 203,
		},
		"batch that fails": {
			drover.JobTypeBatch, 200, func(g *drover.TaskGroup) { g.ReschedulePolicy = atOnce }, drover.AllocClientFailed,
			17 * 200,
		},
		"batch that ends": {
			drover.JobTypeBatch, 200, func(g *drover.TaskGroup) { g.ReschedulePolicy = atOnce }, drover.AllocClientComplete,
			200,
		},
		"one that ends": {
			drover.JobTypeService, 1, func(g *drover.TaskGroup) { g.ReschedulePolicy = atOnce }, drover.AllocClientComplete,
			80,
		},
		// Once, then after 30, 60, 120, 240 and 480 s.
		"system that fails":   {drover.JobTypeSystem, 1, func(g *drover.TaskGroup) {}, drover.AllocClientFailed, 6 * nodes},
		"system that ends":    {drover.JobTypeSystem, 1, func(g *drover.TaskGroup) {}, drover.AllocClientComplete, 6 * nodes},
		"system that rolls":   {drover.JobTypeSystem, 1, func(g *drover.TaskGroup) { g.Update = rollout }, drover.AllocClientFailed, 6 * nodes},
		"sysbatch that fails": {drover.JobTypeSysBatch, 1, func(g *drover.TaskGroup) {}, drover.AllocClientFailed, nodes},
		"sysbatch that ends":  {drover.JobTypeSysBatch, 1, func(g *drover.TaskGroup) {}, drover.AllocClientComplete, nodes},
		// Twice at once, then after 5, 10, 20 … 300 s.
		"pool that fails": {
			drover.JobTypeService, 1, func(g *drover.TaskGroup) { g.Pool = &drover.WarmPool{Size: 20} },
			drover.AllocClientFailed, 10 * 20,
		},
		"pool that ends": {
			drover.JobTypeService, 1, func(g *drover.TaskGroup) { g.Pool = &drover.WarmPool{Size: 20} },
			drover.AllocClientComplete, 10 * 20,
		},
		"pool in haste": {drover.JobTypeService, 1, func(g *drover.TaskGroup) {
			g.Pool = &drover.WarmPool{Size: 20}
			g.ReschedulePolicy = &drover.ReschedulePolicy{Delay: new(time.Millisecond), MaxDelay: new(time.Millisecond)}
		}, drover.AllocClientFailed, 17 * 20},
		"pool without a delay": {drover.JobTypeService, 1, func(g *drover.TaskGroup) {
			g.Pool, g.ReschedulePolicy = &drover.WarmPool{Size: 20}, atOnce
		}, drover.AllocClientFailed, 10 * 20},
		"pool in great demand": {
			drover.JobTypeService, 1, func(g *drover.TaskGroup) { g.Pool = &drover.WarmPool{Size: 1, Demand: 100} },
			drover.AllocClientFailed, 5 * 101,
		},
		"pool of nothing": {
			drover.JobTypeService, 1, func(g *drover.TaskGroup) { g.Pool = &drover.WarmPool{Demand: 20} },
			drover.AllocClientFailed, 10 * 20,
		},
		"pool with few runners": {
			drover.JobTypeService, 1, func(g *drover.TaskGroup) { g.Pool = &drover.WarmPool{Size: 20, MaxRunners: 5} },
			drover.AllocClientFailed, 10 * 20,
		},
	}
}

// TestNoKindOfWorkMakesAStorm: of no type of job, and however its allocations end, do many begin in ten minutes when all
// of them end at once. Every end is looked at as the nodes tell of it, and every follow-up when it is due.
func TestNoKindOfWorkMakesAStorm(t *testing.T) {
	t.Parallel()
	for name, c := range storms() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			for i := range stormNodes {
				w.addNode(fmt.Sprintf("n%d", i), func(n *drover.Node) {
					n.NodeResources.Cpu.CpuShares, n.NodeResources.Memory.MemoryMB = 1_000_000, 1_000_000
				})
			}
			j := newJob("x", c.kind, c.count)
			c.edit(j.TaskGroups[0])
			w.putJob(j)
			w.eval("x")
			began := w.now
			for w.now.Sub(began) < 10*time.Minute {
				w.now = w.now.Add(20 * time.Millisecond)
				if w.endAll(c.ends, &w.quick) == 0 {
					due := w.waiting()
					if len(due) == 0 {
						break // nobody will look again
					}
					w.now = slices.MinFunc(due, time.Time.Compare)
				}
				w.evalFor("x", drover.TriggerRetryFailedAlloc)
				require.LessOrEqual(t, len(w.created), c.most, "allocations after %v", w.now.Sub(began))
			}
			t.Logf("%d allocations in %v", len(w.created), w.now.Sub(began))
		})
	}
}

// TestABusyPoolIsNotBrakedForFewThatFail: of a pool whose runners are claimed as fast as they are made, one of five ends
// at once (one of its nodes is broken, perhaps). Those that work say that the pool does.
func TestABusyPoolIsNotBrakedForFewThatFail(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.addNode("n", func(n *drover.Node) {
		n.NodeResources.Cpu.CpuShares, n.NodeResources.Memory.MemoryMB = 1_000_000, 1_000_000
	})
	j := newJob("p", drover.JobTypeService, 1)
	j.TaskGroups[0].Pool = &drover.WarmPool{Size: 10}
	w.putJob(j)
	w.eval("p")
	for range 20 {
		w.now = w.now.Add(time.Second)
		for i, a := range w.live("p") {
			if a.Claim != nil {
				continue
			}
			w.change(a.ID, func(a *drover.Allocation) {
				a.ClientStatus, a.ModifyTime = drover.AllocClientRunning, w.now.UnixNano()
				if i%5 != 0 {
					a.Claim = &drover.Claim{}
					return
				}
				a.ClientStatus = drover.AllocClientFailed
				a.TaskStates = map[string]*drover.TaskState{"t": {State: "dead", Failed: true}}
			})
			if w.allocs[a.ID].EndedQuickly() { // as the state machine counts
				w.quick.Count++
				w.quick.Last = w.now.UnixNano()
			}
		}
		require.Len(t, placed(w.evalFor("p", drover.TriggerRetryFailedAlloc)), 10)
	}
	require.Zero(t, w.quick.Count, "a job with a pool and other groups is not slowed by its runners either")
}

// TestAStoppedAllocationIsReplacedAtOnce: the brake is for what ends by itself.
func TestAStoppedAllocationIsReplacedAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.addNode("n", nil)
	w.putJob(newJob("web", drover.JobTypeService, 1))
	w.quick = drover.QuickEnds{Count: 1000, Last: w.now.UnixNano()}
	require.Empty(t, placed(w.eval("web")))
	require.Len(t, placed(w.evalFor("web", drover.TriggerAllocStop)), 1)
}

// failAll ends everything that runs at once, as the state machine counts it.
func (w *world) failAll(q *drover.QuickEnds) int { return w.endAll(drover.AllocClientFailed, q) }

// endAll is failAll with an end.
func (w *world) endAll(status string, q *drover.QuickEnds) (n int) {
	for _, id := range w.created {
		a := w.allocs[id]
		if a.Terminal() {
			continue
		}
		w.change(id, func(a *drover.Allocation) {
			a.ClientStatus, a.ModifyTime = status, w.now.UnixNano()
			a.TaskStates = map[string]*drover.TaskState{"t": {
				State: "dead", Failed: status == drover.AllocClientFailed, StartedAt: w.now,
				FinishedAt: w.now,
			}}
		})
		if w.allocs[id].EndedQuickly() {
			q.Count++
			q.Last = w.now.UnixNano()
		}
		n++
	}
	return n
}

// waiting lists when follow-ups are due.
func (w *world) waiting() (at []time.Time) {
	for _, e := range w.evals {
		if e.Status == drover.EvalPending && e.WaitUntil.After(w.now) {
			at = append(at, e.WaitUntil)
		}
	}
	return at
}
