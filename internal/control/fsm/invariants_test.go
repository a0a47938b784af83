package fsm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/exchange"
)

// breaks requires that the command breaks an invariant, by the beginning of what is reported.
func (b *bench) breaks(what string, c command.Command) {
	b.t.Helper()
	defer func() {
		r, _ := recover().(string)
		require.Contains(b.t, r, what)
	}()
	_, _ = b.try(c)
	b.t.Fatalf("it does not break %q", what)
}

func reported(nodeID string, u exchange.AllocUpdate) *command.UpdateAllocs {
	return &command.UpdateAllocs{Time: 9, Nodes: []command.NodeUpdates{{NodeID: nodeID, Updates: []exchange.AllocUpdate{u}}}}
}

func withPlacedOn(t *testing.T, nodes ...string) (*bench, *drover.Job) {
	b := setup(t)
	for _, n := range nodes {
		b.do(node(n))
	}
	j := job("j", "service", 1)
	b.do(&command.RegisterJob{Job: j})
	j = b.now().Job("default", "j")
	b.do(plan(j, placed("a", "j")))
	return b, j
}

func TestAnAllocationStaysOnItsNode(t *testing.T) {
	t.Parallel()
	b, j := withPlacedOn(t, "n1", "n2")
	b.do(plan(j, placed("a", "j")))
	moved := placed("a", "j")
	moved.NodeID = "n2"
	b.breaks("invariant 2 (one node): a: a plan moves it from node n1 to n2", plan(j, moved))
}

func TestAnAllocationRunsOnOneNode(t *testing.T) {
	t.Parallel()
	b, _ := withPlacedOn(t, "n1", "n2")
	b.do(reported("n1", exchange.AllocUpdate{ID: "a", ClientStatus: drover.AllocClientRunning}))
	b.do(reported("n2", exchange.AllocUpdate{ID: "a", ClientStatus: drover.AllocClientFailed})) // it refuses it: nothing runs there
	require.Equal(t, drover.AllocClientRunning, b.now().Allocation("a").ClientStatus)
	b.do(reported("n2", exchange.AllocUpdate{ID: "unknown", ClientStatus: drover.AllocClientRunning}))
	b.breaks("invariant 2 (one node): a: it is placed on node n1, and node n2",
		reported("n2", exchange.AllocUpdate{ID: "a", ClientStatus: drover.AllocClientRunning}))
}

func TestWhatIsPlacedFits(t *testing.T) {
	t.Parallel()
	b, j := withPlacedOn(t, "n1", "n2")
	large := func(id, nodeID string, cpu int64) *drover.Allocation {
		a := placed(id, "j")
		a.NodeID, a.AllocatedResources.Tasks["t"].Cpu.CpuShares = nodeID, cpu
		return a
	}
	b.do(plan(j, large("b", "n1", 900), large("c", "n2", 1000))) // up to the last share
	b.do(plan(j, large("x", "nobody", 5000)))                    // the node was forgotten meanwhile
	b.breaks("invariant 3 (within capacity): n1: index 7: cpu: {1001 ", plan(j, large("d", "n1", 1)))
}

func TestWhatHasEndedMakesRoom(t *testing.T) {
	t.Parallel()
	b, j := withPlacedOn(t, "n1")
	b.do(update("a", drover.AllocClientComplete))
	full := placed("b", "j")
	full.AllocatedResources.Tasks["t"].Cpu.CpuShares = 1000
	b.do(plan(j, full))
}

func TestARunnerIsClaimedOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.do(node("n1"))
	j := job("j", "service", 1)
	j.TaskGroups[0].Pool = &drover.WarmPool{Size: 1}
	b.do(&command.RegisterJob{Job: j})
	b.do(plan(b.now().Job("default", "j"), placed("a", "j")))
	claim := func(c drover.Claim) *command.ClaimRunners {
		return &command.ClaimRunners{Time: 3, Claims: []command.RunnerClaim{{AllocID: "a", Claim: c}}}
	}
	b.do(claim(drover.Claim{RunnerID: "r", ClaimedAt: 7}))
	b.do(claim(drover.Claim{RunnerID: "r", ClaimedAt: 7}))                 // after a lost answer
	b.do(claim(drover.Claim{RunnerID: "r", ClaimedAt: 7, IdleTimeout: 9})) // its claimer extends it
	require.EqualValues(t, 9, b.now().Allocation("a").Claim.IdleTimeout)
	b.breaks("invariant 4 (handed out once): a: it was claimed at 7, and is claimed again at 8",
		claim(drover.Claim{RunnerID: "r", ClaimedAt: 8}))
}

func TestWhatFailedIsNotReportedAsComplete(t *testing.T) {
	t.Parallel()
	b, _ := withPlacedOn(t, "n1")
	states := func(failed bool) map[string]*drover.TaskState {
		return map[string]*drover.TaskState{"t": {State: drover.TaskStateDead, Failed: failed}, "side": {State: drover.TaskStateDead}}
	}
	b.do(reported("n1", exchange.AllocUpdate{ID: "a", ClientStatus: drover.AllocClientRunning, TaskStates: states(true)}))
	b.breaks("invariant 7 (failure is no success): a: node n1 reports it as complete, and task t failed",
		reported("n1", exchange.AllocUpdate{ID: "a", ClientStatus: drover.AllocClientComplete, TaskStates: states(true)}))
	b, _ = withPlacedOn(t, "n1")
	b.do(reported("n1", exchange.AllocUpdate{ID: "a", ClientStatus: drover.AllocClientComplete, TaskStates: states(false)}))
}
