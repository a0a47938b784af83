package planner

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/telemetry"
)

func TestLonePlanIsCommittedWithItsEvaluation(t *testing.T) {
	t.Parallel()
	f := newFakeState()
	f.nodes["n"] = node("n", 10)
	p := newPlanner(f, Config{})
	start(t, p)
	done := &drover.Evaluation{ID: "e", Status: drover.EvalComplete}
	r, err := p.Submit(t.Context(), place(alloc("a", "n", 10)), []*drover.Evaluation{done})
	require.NoError(t, err)
	require.Zero(t, r.RefreshIndex)
	require.EqualValues(t, 2, r.AllocIndex)
	require.Equal(t, 1, f.entries)
	require.Contains(t, f.evals, "e")

	r, err = p.Submit(t.Context(), place(alloc("b", "n", 1)), []*drover.Evaluation{{ID: "e2"}})
	require.NoError(t, err)
	require.NotZero(t, r.RefreshIndex)
	require.NotContains(t, f.evals, "e2", "the evaluation is not done")
}

// Each node that is refused is counted, by its id.
func TestRefusedNodesAreCounted(t *testing.T) {
	t.Parallel()
	f := newFakeState()
	f.nodes["n"], f.nodes["full"], f.nodes["gone"] = node("n", 10), node("full", 1), node("gone", 10)
	f.nodes["gone"].Status = drover.NodeStatusDown
	metrics := telemetry.NewMetrics(clock.Wall{})
	p := newPlanner(f, Config{})
	p.deps.Samples = metrics.Samples()
	start(t, p)
	for range 2 {
		_, err := p.Submit(t.Context(), place(alloc("a", "n", 2), alloc("b", "full", 2), alloc("c", "gone", 2)), nil)
		require.NoError(t, err)
	}
	w := httptest.NewRecorder()
	metrics.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/metrics?format=prometheus", nil))
	var counted []string
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, "nomad_nomad_plan_node_rejected") {
			counted = append(counted, strings.TrimSpace(line))
		}
	}
	require.ElementsMatch(t, []string{
		`nomad_nomad_plan_node_rejected{node_id="full"} 2`, `nomad_nomad_plan_node_rejected{node_id="gone"} 2`,
	}, counted)
}

// TestFollowUpsOfAcceptedPartsAreCommitted: seed 9791 of the simulation. A plan evicted an allocation on one node and was
// refused on another; nobody looked at the job of the evicted one, as the next plan had nothing to evict.
func TestFollowUpsOfAcceptedPartsAreCommitted(t *testing.T) {
	t.Parallel()
	f := newFakeState()
	f.nodes["n"], f.nodes["full"] = node("n", 10), node("full", 1)
	f.allocs["victim"] = alloc("victim", "n", 5)
	p := newPlanner(f, Config{})
	start(t, p)
	evals := []*drover.Evaluation{
		{ID: "preempted", Status: drover.EvalPending, WaitUntil: time.Unix(1, 0)},
		{ID: "blocked", Status: drover.EvalBlocked},
		{ID: "e", Status: drover.EvalComplete},
	}
	plan := place(alloc("a", "full", 2))
	r, err := p.Submit(t.Context(), plan, evals)
	require.NoError(t, err)
	require.NotZero(t, r.RefreshIndex)
	require.Empty(t, f.evals, "nothing was accepted")

	plan.NodePreemptions = map[string][]*drover.Allocation{"n": {alloc("victim", "n", 5)}}
	r, err = p.Submit(t.Context(), plan, evals)
	require.NoError(t, err)
	require.NotZero(t, r.RefreshIndex)
	require.Equal(t, []string{"preempted"}, slices.Collect(maps.Keys(f.evals)), "the rest is planned again")
}

func TestPlansOnTheirWayCount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFakeState()
		f.gate, f.arrived = make(chan struct{}), make(chan struct{}, 10)
		f.nodes["n"] = node("n", 10)
		p := newPlanner(f, Config{})
		start(t, p)
		results := map[string]chan drover.PlanResult{
			"a": make(chan drover.PlanResult, 1), "b": make(chan drover.PlanResult, 1),
			"c": make(chan drover.PlanResult, 1),
		}
		submit := func(id string, cpu int64) {
			go func() { // ends when the plan is answered
				r, err := p.Submit(t.Context(), place(alloc(id, "n", cpu)), nil)
				if err == nil {
					results[id] <- r
				}
			}()
			synctest.Wait()
		}
		submit("a", 6)
		<-f.arrived
		submit("b", 6) // no room, if a lands
		submit("c", 4) // room beside a
		require.Len(t, f.arrived, 0)
		f.gate <- struct{}{}
		first := <-results["a"]
		require.Zero(t, first.RefreshIndex)
		f.gate <- struct{}{}
		b, c := <-results["b"], <-results["c"]
		require.NotZero(t, b.RefreshIndex)
		require.EqualValues(t, 3, b.RefreshIndex, "planned again behind what is on its way")
		require.Zero(t, c.RefreshIndex)
		require.Equal(t, 2, f.entries, "one entry for all that came while the first was on its way")
	})
}

func TestStaleTokenIsRefused(t *testing.T) {
	t.Parallel()
	f := newFakeState()
	p := newPlanner(f, Config{})
	start(t, p)
	plan := place(alloc("a", "n", 1))
	plan.EvalToken = "old"
	_, err := p.Submit(t.Context(), plan, nil)
	require.Equal(t, drover.Conflict, drover.CodeOf(err))
}

func TestLostLog(t *testing.T) {
	t.Parallel()
	f := newFakeState()
	f.nodes["n"] = node("n", 10)
	f.fail = drover.Errorf(drover.NotLeader, "gone")
	p := newPlanner(f, Config{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = p.Run(ctx) }() // ends with cancel
	_, err := p.Submit(t.Context(), place(alloc("a", "n", 1)), nil)
	require.Equal(t, drover.NotLeader, drover.CodeOf(err))
	cancel()
	<-ended
	_, err = p.Submit(t.Context(), place(alloc("a", "n", 1)), nil)
	require.Equal(t, drover.Unavailable, drover.CodeOf(err))
}

func TestPlacementOnANodeThatWentDownIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFakeState()
		f.gate, f.arrived = make(chan struct{}), make(chan struct{}, 10)
		f.nodes["n"] = node("n", 10)
		p := newPlanner(f, Config{})
		start(t, p)
		answered := make(chan error, 1)
		go func() { // ends when the plan is answered
			_, err := p.Submit(t.Context(), place(alloc("a", "n", 1)), nil)
			answered <- err
		}()
		<-f.arrived
		down := node("n", 10)
		down.Status = drover.NodeStatusDown
		f.setNode(down)
		f.gate <- struct{}{}
		f.gate <- struct{}{}
		require.NoError(t, <-answered)
		require.Len(t, f.evals, 1)
		for _, e := range f.evals {
			require.Equal(t, drover.TriggerNodeUpdate, e.TriggeredBy)
			require.Equal(t, "j", e.JobID)
		}
	})
}

func TestNeverOverCapacity(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		f := newFakeState()
		nodes := rapid.IntRange(1, 4).Draw(rt, "nodes")
		for n := range nodes {
			f.nodes[fmt.Sprint(n)] = node(fmt.Sprint(n), rapid.Int64Range(1, 20).Draw(rt, "cpu"))
		}
		p := newPlanner(f, Config{MaxPlans: rapid.IntRange(1, 8).Draw(rt, "max")})
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() { defer close(ended); _ = p.Run(ctx) }() // ends with cancel
		var wg sync.WaitGroup
		for i := range rapid.IntRange(1, 30).Draw(rt, "plans") {
			seed := rapid.Uint64().Draw(rt, "seed")
			wg.Go(func() { // ends when the plan is answered
				rng := rand.New(rand.NewPCG(seed, 1))
				var list []*drover.Allocation
				for j := range 1 + rng.IntN(3) {
					list = append(list, alloc(fmt.Sprintf("%d/%d", i, j), fmt.Sprint(rng.IntN(nodes)), rng.Int64N(6), 1+rng.IntN(8)))
				}
				_, _ = p.Submit(ctx, place(list...), nil)
			})
		}
		wg.Wait()
		cancel()
		<-ended
		s := f.snapshot()
		for nodeID, n := range f.nodes {
			if ok, dim := s.Used(nodeID).Fits(n.Total()); !ok {
				rt.Fatalf("node %s is over its %s: %v of %v", nodeID, dim, s.Used(nodeID), n.Total())
			}
			taken := exclusiveSet{}
			for a := range s.UnfinishedByNode(nodeID) {
				if !taken.add(a.AllocatedResources) {
					rt.Fatalf("node %s has a port twice", nodeID)
				}
			}
		}
	})
}
