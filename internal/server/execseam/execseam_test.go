package execseam

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/eventstream"
	"github.com/drover-project/drover/internal/control/fsm"
	"github.com/drover-project/drover/internal/control/intake"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/exec/environment"
	"github.com/drover-project/drover/internal/exec/executor"
	"github.com/drover-project/drover/internal/exec/runner"
	"github.com/drover-project/drover/internal/id"
)

// applied is a log that applies what is proposed at once.
type applied struct {
	fsm   *fsm.FSM
	index uint64
}

func (l *applied) Propose(_ context.Context, c command.Command) (uint64, any, error) {
	data, err := command.Encode(c)
	if err != nil {
		return 0, nil, err
	}
	l.index++
	result, err := l.fsm.Apply(l.index, data)
	return l.index, result, err
}

// controlled is a state and the intake that writes into it.
func controlled(t *testing.T, observers ...fsm.Observer) (*store.Store, *intake.Intake) {
	t.Helper()
	s := store.New()
	log := &applied{fsm: fsm.New(s, fsm.Observers(observers))}
	return s, intake.New(intake.Deps{Log: log, Store: s, Clock: clock.Wall{}, IDs: id.Random{}})
}

// An environment is put, shown as Poseidon's template job, found among the templates that tools registered, and removed.
func TestEnvironmentsThroughTheServer(t *testing.T) {
	t.Parallel()
	state, control := controlled(t)
	in := Intake{In: control}
	kept, err := environment.ToJob(environment.Canonicalize(execution.Environment{ID: "7", Image: "host"}), environment.Options{})
	require.NoError(t, err)
	require.NoError(t, in.RegisterJob(t.Context(), kept))
	shown := State{state}.Snapshot().Job(drover.DefaultNamespace, environment.TemplatePrefix+"7")
	require.NotNil(t, shown)

	list := Templates{state, control}
	require.Empty(t, list.Templates(t.Context()), "nobody registered one")
	job := *shown
	job.ID = environment.TemplatePrefix + "9"
	job.Name, job.JobModifyIndex = job.ID, 0 // it is a new one
	require.NoError(t, in.RegisterJob(t.Context(), &job))
	got := list.Templates(t.Context())
	require.Len(t, got, 1)
	require.Equal(t, "9", got[0].ID)
	require.NoError(t, list.RemoveTemplate(t.Context(), "9"))
	require.NoError(t, list.RemoveTemplate(t.Context(), "9"), "there is none")
	require.Empty(t, list.Templates(t.Context()))
	require.NoError(t, in.DeregisterJob(t.Context(), drover.DefaultNamespace, kept.ID))
	require.Nil(t, state.Snapshot().Job(drover.DefaultNamespace, kept.ID))
}

// What happens to executions is in the event stream; who was told is kept by nobody who does not keep how they ended.
func TestExecutionsAreTold(t *testing.T) {
	t.Parallel()
	buffer := eventstream.New(eventstream.Config{})
	state, control := controlled(t, buffer)
	keeps := false
	tell := Teller{control, func() bool { return keeps }}
	events, err := Events{buffer}.Subscribe(map[string][]string{"*": {"*"}}, "*", 0)
	require.NoError(t, err)
	x := execution.Execution{ID: "x1"}
	require.NoError(t, tell.TellExecutions(t.Context(), []executor.Event{{Type: executor.EventTold, Execution: x}}))
	require.Zero(t, state.Snapshot().Index(), "there is nothing to write")
	require.NoError(t, tell.TellExecutions(t.Context(), []executor.Event{{Type: executor.EventEnded, Execution: x}}))
	got, err := events.Next(t.Context())
	require.NoError(t, err)
	require.Len(t, got.Events, 1)
	require.Equal(t, "x1", got.Events[0].Key)
	require.Nil(t, state.Snapshot().Execution("x1"), "a server that is alone keeps it itself")
}

// A release that a claimer asked for counts whichever server keeps the runner now; what a server found idle is its own to release.
func TestAReleaseThatWasAskedForCounts(t *testing.T) {
	t.Parallel()
	s := store.New()
	log := &applied{fsm: fsm.New(s, nil)}
	control := intake.New(intake.Deps{Log: log, Store: s, Clock: clock.Wall{}, IDs: id.Random{}})
	do := func(c command.Command) any {
		t.Helper()
		_, result, err := log.Propose(t.Context(), c)
		require.NoError(t, err)
		return result
	}
	one := do(&command.BeginIncarnation{Server: "one"}).(command.Begun).Incarnation
	job, err := environment.ToJob(environment.Canonicalize(execution.Environment{ID: "e", Image: "host", PoolSize: 1}), environment.Options{})
	require.NoError(t, err)
	job = do(&command.RegisterJob{Job: job}).(*drover.Job)
	a := &drover.Allocation{ID: "a", Namespace: drover.DefaultNamespace, JobID: job.ID, NodeID: "n", TaskGroup: environment.GroupName}
	do(&command.ApplyPlans{Plans: []command.PlanCommit{{Job: job, Placed: []*drover.Allocation{a}}}})
	do(&command.UpdateAllocs{Nodes: []command.NodeUpdates{
		{NodeID: "n", Updates: []exchange.AllocUpdate{{ID: "a", ClientStatus: drover.AllocClientRunning}}},
	}})
	in := Intake{In: control, Lease: one}
	_, err = in.ClaimRunners(t.Context(), []runner.AllocClaim{{AllocID: "a", Claim: drover.Claim{RunnerID: "e-a"}}}, nil)
	require.NoError(t, err)
	two := do(&command.BeginIncarnation{Server: "two"}).(command.Begun).Incarnation
	do(&command.EndIncarnation{Incarnation: one, Heir: two, Claimed: true})
	require.Equal(t, two, s.Snapshot().Allocation("a").Lease)
	release := runner.Releases{AllocIDs: []string{"a", "unknown"}, Reason: "r"}
	require.NoError(t, in.ReleaseRunners(t.Context(), release))
	require.False(t, s.Snapshot().Allocation("a").Terminal())
	release.Asked = true
	require.NoError(t, in.ReleaseRunners(t.Context(), release))
	require.True(t, s.Snapshot().Allocation("a").Terminal())
}
