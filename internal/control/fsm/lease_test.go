package fsm

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/control/command"
)

// pool stores a job "env" with a pool of two, and n of its runners, a0, a1 …, which run.
func (b *bench) pool(n int) {
	j := job("env", "service", 1)
	j.TaskGroups[0].Pool = &drover.WarmPool{Size: 2}
	j = b.do(register(j)).(*drover.Job)
	for i := range n {
		b.start(j, i)
	}
}

func (b *bench) start(j *drover.Job, i int) string {
	id := "a" + string(rune('0'+i))
	b.do(plan(j, placed(id, "env")))
	b.do(update(id, drover.AllocClientRunning))
	return id
}

func (b *bench) handOut(incarnation uint64, allocID string) error {
	results := b.do(&command.RecordRunners{Incarnation: incarnation, Claims: []command.RunnerClaim{
		{AllocID: allocID, Claim: drover.Claim{RunnerID: "env-" + allocID, ClaimedAt: int64(incarnation)}},
	}}).([]command.ClaimResult)
	return results[0].Err
}

func (b *bench) begin(server string) uint64 {
	return b.do(&command.BeginIncarnation{Server: server}).(command.Begun).Incarnation
}

// A process that is gone keeps no claimed runners; what it may have handed out without a record stays its own until it is ended.
func TestClaimedRunnersGoBeforeTheIncarnationEnds(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one := b.begin("one")
	b.pool(2)
	require.NoError(t, b.handOut(one, "a0"))
	b.do(&command.EndIncarnation{Incarnation: one, Heir: one, Claimed: true})
	require.Equal(t, one, b.now().Allocation("a0").Lease, "there is nobody else")
	two := b.begin("two")
	b.do(&command.EndIncarnation{Incarnation: one, Heir: one, Claimed: true})
	require.Equal(t, two, b.now().Allocation("a0").Lease)
	require.Equal(t, one, b.now().Allocation("a1").Lease)
	require.False(t, b.now().Allocation("a1").Terminal())
	require.NotNil(t, b.now().Lessee(one))
	require.NoError(t, b.handOut(one, "a1"), "it was handed out before, and told now")
	b.begin("one")
	require.Equal(t, two, b.now().Allocation("a0").Lease, "who comes back does not get it back")
}

func TestWarmRunnersAreLeasedToOneServer(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one, two := b.begin("one"), b.begin("two")
	b.pool(4)
	leased := map[uint64]int{}
	for _, id := range []string{"a0", "a1", "a2", "a3"} {
		leased[b.now().Allocation(id).Lease]++
	}
	require.Equal(t, map[uint64]int{one: 2, two: 2}, leased)
	require.Equal(t, one, b.now().Allocation("a0").Lease)
	require.Equal(t, drover.Conflict, drover.CodeOf(b.handOut(two, "a0")), "it is the other's")
	require.Equal(t, drover.Conflict, drover.CodeOf(b.handOut(0, "a0")))
	require.NoError(t, b.handOut(one, "a0"))
	require.Contains(t, b.lastTypes(), "Runner/RunnerClaimed")
	b.do(&command.RecordRunners{Incarnation: two, Released: []string{"a0"}})
	require.False(t, b.now().Allocation("a0").Terminal(), "who does not keep it does not stop it")

	b.do(&command.EndIncarnation{Incarnation: one, Heir: two})
	require.Equal(t, two, b.now().Allocation("a0").Lease)
	require.False(t, b.now().Allocation("a0").Terminal())
	require.True(t, b.now().Allocation("a2").Terminal(), "it may have been handed out")
	require.Equal(t, drover.Conflict, drover.CodeOf(b.handOut(one, "a2")))
	require.NoError(t, b.handOut(one, "a0"), "it was recorded before")
	b.do(&command.RecordRunners{Incarnation: one, Released: []string{"a0"}})
	require.False(t, b.now().Allocation("a0").Terminal())
	restore(t, b.f)
}

func TestAServerThatLeavesReturnsItsRunners(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one, two := b.begin("one"), b.begin("two")
	b.pool(2)
	b.do(&command.EndIncarnation{Incarnation: one, Heir: two, Returned: true})
	require.Equal(t, two, b.now().Allocation("a0").Lease)
	require.Equal(t, two, b.now().Allocation("a1").Lease)
	begun := b.do(&command.BeginIncarnation{Server: "two"}).(command.Begun)
	require.Equal(t, two, begun.Former)
	again := begun.Incarnation
	require.Nil(t, b.now().Lessee(two))
	require.NotNil(t, b.now().Lessee(again))
	require.True(t, b.now().Allocation("a0").Terminal(), "its server was killed")
}

// A server that was alone has one of several added: what it kept goes to its first incarnation, as from one that ended.
func TestAServerThatWasAlone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.pool(2)
	require.Zero(t, b.now().Allocation("a0").Lease)
	b.do(&command.ClaimRunners{Claims: []command.RunnerClaim{{AllocID: "a0", Claim: drover.Claim{RunnerID: "env-a0"}}}})
	one := b.begin("one")
	require.Equal(t, one, b.now().Allocation("a0").Lease)
	require.False(t, b.now().Allocation("a0").Terminal())
	require.True(t, b.now().Allocation("a1").Terminal())
	b.do(&command.EndIncarnation{Incarnation: one}) // and is alone again
	require.Zero(t, b.now().Allocation("a0").Lease)
	require.False(t, b.now().Allocation("a0").Terminal())
}

// The demand of a pool is that of all servers together, less what the pool has by itself.
func TestDemandsAreSummed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one, two := b.begin("one"), b.begin("two")
	b.pool(0)
	demand := func(incarnation uint64, n int) {
		b.do(&command.RecordRunners{Incarnation: incarnation, Demands: []command.PoolDemand{{Namespace: "default", JobID: "env", Demand: n}}})
	}
	pool := func() int { return b.now().Job("default", "env").TaskGroups[0].Pool.Demand }
	demand(one, 2)
	require.Zero(t, pool(), "the pool itself has two")
	demand(two, 3)
	require.Equal(t, 3, pool())
	b.start(b.now().Job("default", "env"), 0)
	require.Equal(t, two, b.now().Allocation("a0").Lease, "most claims wait there")
	changed := job("env", "service", 1)
	changed.Priority, changed.TaskGroups[0].Pool = 60, &drover.WarmPool{Size: 1}
	b.do(register(changed))
	require.Equal(t, 4, pool(), "another version has it too")
	demand(99, 7)
	b.do(&command.EndIncarnation{Incarnation: two, Heir: one})
	require.Equal(t, 1, pool())
	b.do(&command.DeregisterJob{Namespace: "default", ID: "env", Purge: true})
	require.Empty(t, b.now().Lessee(one).Demands)
}

// An environment is deleted, and the scheduler has not stopped its runners yet when their server ends: they are not left with its
// lease. (simulation, seed 67 of several servers)
func TestRunnersOfAPurgedJobEndWithTheirServer(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one, two := b.begin("one"), b.begin("two")
	b.pool(4)
	require.NoError(t, b.handOut(one, "a0"))
	b.do(&command.DeregisterJob{Namespace: "default", ID: "env", Purge: true})
	require.Nil(t, b.now().Job("default", "env"))
	require.False(t, b.now().Allocation("a2").Terminal())
	b.do(&command.EndIncarnation{Incarnation: one, Heir: two})
	require.True(t, b.now().Allocation("a2").Terminal())
	require.Equal(t, two, b.now().Allocation("a0").Lease)
	require.False(t, b.now().Allocation("a1").Terminal(), "the other server lives")
}

// A server that comes back begins an incarnation before its state knows of a new environment. The runners of that which it held in
// its former life are replaced all the same. (simulation, seed 18 of several servers)
func TestStoppedRunnersAreReplacedWhoeverProposesIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.begin("one")
	b.pool(2)
	evals := func() (of []string) {
		for ev := range b.now().EvaluationsByJob("default", "env") {
			if ev.TriggeredBy == drover.TriggerAllocStop {
				of = append(of, ev.ID)
			}
		}
		return of
	}
	b.begin("one")
	require.True(t, b.now().Allocation("a0").Terminal())
	require.Len(t, evals(), 1, "one for both")
	b.begin("one")
	require.Len(t, evals(), 1, "nothing was stopped")
	restore(t, b.f)
}

// A server that comes back ends the claims that waited at it in its former life, before its state knows the environment. What was made
// for them is looked at, or it would be warm for nobody for ever. (simulation, seed 7880 of several servers)
func TestADemandThatEndsIsLookedAtWhoeverProposesIt(t *testing.T) {
	t.Parallel()
	for version, want := range map[int]int{2: 0, 3: 1} {
		b := setup(t)
		b.do(&command.InitCluster{ID: "c", Epoch: "1"})
		b.do(&command.RaiseVersion{Version: version})
		one := b.begin("one")
		j := job("env", "service", 1)
		j.TaskGroups[0].Pool = &drover.WarmPool{}
		b.do(register(j))
		b.do(&command.RecordRunners{Incarnation: one, Demands: []command.PoolDemand{{Namespace: "default", JobID: "env", Demand: 2}}})
		before := len(slices.Collect(b.now().EvaluationsByJob("default", "env")))
		b.begin("one")
		require.Zero(t, b.now().Job("default", "env").TaskGroups[0].Pool.Demand)
		require.Equal(t, before+want, len(slices.Collect(b.now().EvaluationsByJob("default", "env"))), "version %d", version)
		b.begin("one")
		require.Equal(t, before+want, len(slices.Collect(b.now().EvaluationsByJob("default", "env"))), "nothing changed")
		restore(t, b.f)
	}
}

// spared are what may happen between the withholding of runners a0 to a2, of which a2 is still starting, and the plan that stops them and
// places something beside them and elsewhere.
var spared = map[string]struct {
	meanwhile func(b *bench, p *command.PlanCommit) // after the servers were asked
	stopped   []string                              // of the runners
	placed    []string
}{
	"nothing happened": {
		func(*bench, *command.PlanCommit) {}, []string{"a0", "a1", "a2"}, []string{"beside", "elsewhere"},
	},
	"one began to run": {
		func(b *bench, _ *command.PlanCommit) { b.do(update("a2", drover.AllocClientRunning)) },
		[]string{"a0", "a1", "a2"},
		[]string{"beside", "elsewhere"},
	},
	"a new incarnation was leased it": {
		func(b *bench, _ *command.PlanCommit) {
			b.begin("two")
			b.do(update("a2", drover.AllocClientRunning))
		},
		[]string{"a0", "a1"},
		[]string{"elsewhere"},
	},
	"a new incarnation handed it out": {
		func(b *bench, _ *command.PlanCommit) {
			two := b.begin("two")
			b.do(update("a2", drover.AllocClientRunning))
			require.NoError(b.t, b.handOut(two, "a2"))
		},
		[]string{"a0", "a1"},
		[]string{"elsewhere"},
	},
	"a new incarnation was leased it, and it is all or nothing": {
		func(b *bench, p *command.PlanCommit) {
			b.begin("two")
			b.do(update("a2", drover.AllocClientRunning))
			p.AllAtOnce = true
		},
		nil, nil,
	},
	"of a cluster of older servers": {
		func(b *bench, p *command.PlanCommit) {
			b.begin("two")
			b.do(update("a2", drover.AllocClientRunning))
			p.Warm, p.Withheld = nil, nil
		},
		[]string{"a0", "a1", "a2"},
		[]string{"beside", "elsewhere"},
	},
	"the incarnation that was leased it has ended": {
		func(b *bench, p *command.PlanCommit) {
			two := b.begin("two")
			b.do(update("a2", drover.AllocClientRunning))
			b.do(&command.EndIncarnation{Incarnation: two})
			require.True(b.t, b.now().Allocation("a2").Terminal())
		},
		[]string{"a0", "a1", "a2"},
		[]string{"beside", "elsewhere"},
	},
}

// A server begins an incarnation after the planner asked those that there were to withhold what it stops. A runner that was still starting
// then is leased to it and handed out, before the plan is applied.
func TestAPlanSparesWhatAnotherServerMayHandOut(t *testing.T) {
	t.Parallel()
	const size = 4
	for name, c := range spared {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			one := b.begin("one")
			b.pool(2)
			j := b.now().Job("default", "env")
			b.do(plan(j, placed("a2", "env")))
			b.do(plan(j, func() *drover.Allocation { a := placed("a3", "env"); a.NodeID = "n9"; return a }()))
			p := command.PlanCommit{Job: j, Warm: []string{"a0", "a1", "a2"}, Withheld: []uint64{0, one}}
			for _, id := range p.Warm {
				p.Stopped = append(p.Stopped, command.StoppedAlloc{ID: id})
			}
			beside, elsewhere := placed("beside", "env"), placed("elsewhere", "env")
			elsewhere.NodeID = "n9"
			p.Placed = []*drover.Allocation{beside, elsewhere}
			c.meanwhile(b, &p)
			evals := len(slices.Collect(b.now().EvaluationsByJob("default", "env")))
			b.do(&command.ApplyPlans{Plans: []command.PlanCommit{p}})
			var stopped, there []string
			for i := range size {
				if id := "a" + string(rune('0'+i)); b.now().Allocation(id).ServerTerminal() {
					stopped = append(stopped, id)
				}
			}
			for _, id := range []string{"beside", "elsewhere"} {
				if b.now().Allocation(id) != nil {
					there = append(there, id)
				}
			}
			require.Equal(t, c.stopped, stopped)
			require.Equal(t, c.placed, there)
			again := len(slices.Collect(b.now().EvaluationsByJob("default", "env"))) - evals
			if len(c.stopped) < 3 {
				require.Equal(t, 1, again, "it is planned again")
			} else {
				require.Zero(t, again)
			}
			restore(t, b.f)
		})
	}
}

// An environment is deleted while one of its runners is claimed: the plan that stops the others spares it, and no other plan is made for a
// job that is not there. It was left for ever.
func TestARunnerOfAPurgedJobThatIsSparedIsStoppedLater(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one := b.begin("one")
	b.pool(2)
	b.do(&command.DeregisterJob{Namespace: "default", ID: "env", Purge: true})
	require.NoError(t, b.handOut(one, "a1"))
	evals := len(slices.Collect(b.now().EvaluationsByJob("default", "env")))
	b.do(&command.ApplyPlans{Plans: []command.PlanCommit{{
		Stopped: []command.StoppedAlloc{{ID: "a0"}, {ID: "a1"}}, Warm: []string{"a0", "a1"}, Withheld: []uint64{0, one},
	}}})
	require.True(t, b.now().Allocation("a0").ServerTerminal())
	require.False(t, b.now().Allocation("a1").ServerTerminal())
	require.Len(t, slices.Collect(b.now().EvaluationsByJob("default", "env")), evals+1)
	restore(t, b.f)
}

// What a plan preempts is spared in the same way.
func TestAPlanPreemptsNothingThatAnotherServerMayHandOut(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one := b.begin("one")
	b.pool(1)
	j := b.now().Job("default", "env")
	b.do(plan(j, placed("a1", "env")))
	other := b.do(register(job("other", "service", 1))).(*drover.Job)
	p := command.PlanCommit{
		Job: other, Warm: []string{"a0", "a1"}, Withheld: []uint64{0, one}, Placed: []*drover.Allocation{placed("b0", "other")},
		Preempted: []command.PreemptedAlloc{{ID: "a0", By: "b0"}, {ID: "a1", By: "b0"}},
	}
	b.begin("two")
	b.do(update("a1", drover.AllocClientRunning))
	evals := len(slices.Collect(b.now().EvaluationsByJob("default", "other")))
	b.do(&command.ApplyPlans{Plans: []command.PlanCommit{p}})
	require.False(t, b.now().Allocation("a0").ServerTerminal(), "nothing is preempted for what is not placed")
	require.False(t, b.now().Allocation("a1").ServerTerminal())
	require.Nil(t, b.now().Allocation("b0"))
	require.Len(t, slices.Collect(b.now().EvaluationsByJob("default", "other")), evals+1)
}

// Two servers believed to lead, and each handed a runner out for one Idempotency-Key. The first in the log has it.
func TestAKeyHasOneRunner(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one, two := b.begin("one"), b.begin("two")
	b.pool(4)
	claim := func(incarnation uint64, allocID, label string) error {
		results := b.do(&command.RecordRunners{Incarnation: incarnation, Claims: []command.RunnerClaim{{AllocID: allocID, Claim: drover.Claim{
			RunnerID: "env-" + allocID, ClaimedAt: 1, Labels: map[string]string{execution.OnceLabel: label},
		}}}}).([]command.ClaimResult)
		return results[0].Err
	}
	require.NoError(t, claim(one, "a0", "key-request"))
	require.NoError(t, claim(one, "a0", "key-request"), "it is recorded twice")
	require.Equal(t, drover.Conflict, drover.CodeOf(claim(two, "a1", "key-request")))
	require.Equal(t, drover.Conflict, drover.CodeOf(claim(two, "a1", "key-other")))
	require.NoError(t, claim(two, "a1", "another-request"))
	b.do(&command.RecordRunners{Incarnation: one, Released: []string{"a0"}})
	require.NoError(t, claim(two, "a3", "key-request"), "the runner of the first has ended")
}
