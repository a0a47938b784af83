package leader_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/leader"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/exchange"
)

// chaos does random things to a cluster.
type chaos struct {
	*cluster
	rng    *rand.Rand
	agents map[string]*agent
	claims map[string]string // by allocation: who got it
	counts map[string]int    // what jobs should have
	pools  map[string]int
}

func (x *chaos) step(t *testing.T) {
	ctx := t.Context()
	jobID := fmt.Sprintf("j%d", x.rng.IntN(4))
	poolID := fmt.Sprintf("p%d", x.rng.IntN(2))
	nodeID := fmt.Sprintf("n%d", x.rng.IntN(4))
	switch x.rng.IntN(9) {
	case 0, 1:
		x.counts[jobID] = x.rng.IntN(8)
		j := testJob(jobID, drover.JobTypeService, x.counts[jobID])
		j.Update = &drover.UpdateStrategy{MaxParallel: new(0)}
		j.TaskGroups[0].Tasks[0].Resources.CPU = 100 + 100*x.rng.IntN(2)
		x.register(j)
	case 2:
		x.pools[poolID] = x.rng.IntN(5)
		x.register(testPool(poolID, x.pools[poolID]))
	case 3:
		_, err := x.intake.DeregisterJob(ctx, drover.DeregisterRequest{Namespace: "default", ID: jobID, Purge: x.rng.IntN(2) == 0})
		if err == nil {
			delete(x.counts, jobID)
		}
	case 4, 5:
		x.claim(t, poolID)
	case 6:
		if a := x.agents[nodeID]; a != nil {
			a.stop()
			a.wg.Wait()
			delete(x.agents, nodeID)
		} else {
			x.agents[nodeID] = x.agent(testNode(nodeID, 1500), false)
		}
	case 7:
		for a := range x.store.Snapshot().Allocations("*", "") {
			if !a.Terminal() && x.agents[a.NodeID] != nil && x.rng.IntN(4) == 0 {
				_ = x.nodes.Push(ctx, a.NodeID, []exchange.AllocUpdate{{ID: a.ID, ClientStatus: drover.AllocClientFailed}})
			}
		}
	case 8:
		x.stop()
		x.start()
	}
	if x.rng.IntN(3) > 0 {
		clock.Sleep(ctx, clock.Wall{}, time.Duration(x.rng.IntN(40_000))*time.Millisecond)
	}
}

func (x *chaos) claim(t *testing.T, poolID string) {
	for a := range x.store.Snapshot().AllocationsByJob("default", poolID) {
		if !isRunning(a) || a.Claim != nil {
			continue
		}
		who := fmt.Sprintf("r%d", len(x.claims))
		results, err := x.intake.ClaimRunners(t.Context(), []command.RunnerClaim{{AllocID: a.ID, Claim: drover.Claim{RunnerID: who}}})
		if err == nil && results[0].Err == nil {
			if other, taken := x.claims[a.ID]; taken {
				t.Errorf("runner %s was given to %s and %s", a.ID, other, who)
			}
			x.claims[a.ID] = who
		}
		return
	}
}

// watch checks at every commit, until the test ends, that no node holds more than it has.
func (x *chaos) watch(t *testing.T) {
	ctx, done := t.Context(), make(chan struct{})
	go func() { // ends with the test's context
		defer close(done)
		for ctx.Err() == nil {
			changed := x.store.WatchAny()
			s := x.store.Snapshot()
			for n := range s.Nodes("") {
				if ok, dim := s.Used(n.ID).Fits(n.Total()); !ok {
					t.Errorf("index %d: node %s is over its %s: %v", s.Index(), n.ID, dim, s.Used(n.ID))
				}
			}
			select {
			case <-changed:
			case <-ctx.Done():
			}
		}
	}()
	t.Cleanup(func() { <-done })
}

// settled reports whether every job has what it should, or waits for capacity, and nothing is under way.
func (x *chaos) settled(s *store.Snapshot) bool {
	waits := map[string]bool{}
	for e := range s.Evaluations("*", "") {
		if e.Status == drover.EvalPending {
			return false
		}
		waits[e.JobID] = waits[e.JobID] || e.Status == drover.EvalBlocked
	}
	for jobID, want := range x.counts {
		if n := len(x.allocs(s, jobID, isRunning)); n > want || n < want && (!waits[jobID] || room(s, jobID)) {
			return false
		}
	}
	for poolID, want := range x.pools {
		warm := x.allocs(s, poolID, func(a *drover.Allocation) bool { return isRunning(a) && a.Claim == nil })
		if len(warm) > want || len(warm) < want && (!waits[poolID] || room(s, poolID)) {
			return false
		}
	}
	return true
}

// room reports whether an allocation of the job would fit somewhere: then it must not be blocked.
func room(s *store.Snapshot, jobID string) bool {
	for n := range s.Nodes("") {
		fits, _ := s.Job("default", jobID).TaskGroups[0].Asked().Fits(n.Total().Sub(s.Used(n.ID)))
		if n.Ready() && fits {
			return true
		}
	}
	return false
}

func TestChaos(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				x := &chaos{
					cluster: newCluster(t, leader.Config{}), rng: rand.New(rand.NewPCG(seed, 7)),
					agents: map[string]*agent{}, claims: map[string]string{}, counts: map[string]int{}, pools: map[string]int{},
				}
				x.watch(t)
				for range 60 {
					x.step(t)
				}
				for i := range 2 { // at last there are two nodes
					if id := fmt.Sprintf("n%d", i); x.agents[id] == nil {
						x.agents[id] = x.agent(testNode(id, 1500), false)
					}
				}
				x.until("settled", x.settled)
				for id, who := range x.claims {
					if a := x.store.Snapshot().Allocation(id); a != nil && a.Claim.RunnerID != who {
						t.Errorf("the claim of %s by %s was overwritten by %s", id, who, a.Claim.RunnerID)
					}
				}
			})
		})
	}
}
