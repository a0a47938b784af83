package lessee_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/fsm"
	"github.com/drover-project/drover/internal/control/members"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/exec/environment"
	"github.com/drover-project/drover/internal/exec/runner"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/server/lessee"
	"github.com/drover-project/drover/internal/server/servers"
)

// Who answers for a runner, a claim and an execution; while a server does not answer nobody says that there is no such execution.
func TestWhoAnswers(t *testing.T) {
	t.Parallel()
	machine, index := fsm.New(store.New(), nil), uint64(0)
	do := func(c command.Command) any {
		data, err := command.Encode(c)
		require.NoError(t, err)
		index++
		result, err := machine.Apply(index, data)
		require.NoError(t, err)
		return result
	}
	service, err := lessee.New(lessee.Config{Server: "self"}, lessee.Deps{
		Clock: clock.Wall{}, Lead: func(context.Context, func(context.Context)) {}, Leads: func() bool { return false },
	})
	require.NoError(t, err)
	self := servers.Config{Self: members.Self{ID: "self", Region: "global"}}
	d := lessee.Directory{Store: machine.Store(), Lessee: service, Network: lessee.Network{
		Servers: servers.Alone(self, servers.Deps{Store: machine.Store(), Clock: clock.Wall{}}),
	}}
	owner := func(ctx context.Context, place httpapi.Place, key string) string {
		t.Helper()
		server, err := d.Owner(ctx, place, key)
		require.NoError(t, err)
		return server
	}
	ctx := t.Context()
	require.Empty(t, owner(ctx, httpapi.AtClaim, "e"), "nothing is leased to this server")
	require.Equal(t, "self", owner(ctx, httpapi.AtExecution, "x"), "which says that there is none: no server keeps any")
	do(&command.BeginIncarnation{Server: "self"})
	require.Equal(t, "self", owner(ctx, httpapi.AtClaim, "e"))
	require.Empty(t, owner(ctx, httpapi.AtClaim, ""), "the leader, as only it knows repeated claims")
	_, err = d.Owner(ctx, httpapi.AtExecution, "x")
	require.Equal(t, drover.Unavailable, drover.CodeOf(err), "its service has not begun: it may find one yet")

	do(&command.BeginIncarnation{Server: "other"})
	job, err := environment.ToJob(environment.Canonicalize(execution.Environment{ID: "e", Image: "host", PoolSize: 2}), environment.Options{})
	require.NoError(t, err)
	job = do(&command.RegisterJob{Job: job}).(*drover.Job)
	ids := []string{"00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000002"}
	for _, id := range ids {
		a := &drover.Allocation{ID: id, Namespace: drover.DefaultNamespace, JobID: job.ID, NodeID: "n", TaskGroup: environment.GroupName}
		do(&command.ApplyPlans{Plans: []command.PlanCommit{{Job: job, Placed: []*drover.Allocation{a}}}})
		updates := []exchange.AllocUpdate{{ID: id, ClientStatus: drover.AllocClientRunning}}
		do(&command.UpdateAllocs{Nodes: []command.NodeUpdates{{NodeID: "n", Updates: updates}}})
	}
	require.Equal(t, "self", owner(ctx, httpapi.AtRunner, runner.RunnerID("e", ids[0])))
	require.Equal(t, "other", owner(ctx, httpapi.AtRunner, runner.RunnerID("e", ids[1])))
	require.Empty(t, owner(ctx, httpapi.AtRunner, "nonsense"))
	require.Equal(t, "self", owner(ctx, httpapi.AtClaim, "e"), "gossip does not know the other")
	_, err = d.Owner(ctx, httpapi.AtExecution, "x")
	require.Equal(t, drover.Unavailable, drover.CodeOf(err), "the other may have it")
	relayed := httpapi.WithHop(ctx, httpapi.Hop{From: "other", Way: httpapi.FromServer})
	_, err = d.Owner(relayed, httpapi.AtExecution, "x")
	require.Equal(t, drover.Unavailable, drover.CodeOf(err), "it was thought to be here, and went elsewhere meanwhile")
	require.Equal(t, "self", owner(relayed, httpapi.AtClaim, "e"))

	ended := execution.Execution{ID: "x", RunnerID: runner.RunnerID("e", ids[0]), AllocID: ids[0], Receipt: &execution.Receipt{}}
	end := command.ExecutionEvent{Type: "ExecutionEnded", Execution: ended}
	do(&command.RecordExecutions{Records: []command.ExecutionRecord{{Event: end}}})
	require.Equal(t, "self", owner(relayed, httpapi.AtExecution, "x"), "the state has its end")

	claim := command.RunnerClaim{AllocID: ids[1], Claim: drover.Claim{RunnerID: runner.RunnerID("e", ids[1])}}
	other := machine.Store().Snapshot().Allocation(ids[1]).Lease
	do(&command.RecordRunners{Incarnation: other, Claims: []command.RunnerClaim{claim}})
	require.True(t, d.Keeps(other))
	do(&command.EndIncarnation{Incarnation: other, Claimed: true})
	require.False(t, d.Keeps(other))
	require.Equal(t, "self", owner(ctx, httpapi.AtRunner, runner.RunnerID("e", ids[1])), "the oldest that lives")
}
