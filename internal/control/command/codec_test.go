package command

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/service"
)

func roundTrip(t *testing.T, c Command) Command {
	t.Helper()
	data, err := Encode(c)
	require.NoError(t, err)
	back, err := Decode(data)
	require.NoError(t, err)
	again, err := Encode(back)
	require.NoError(t, err)
	require.Equal(t, data, again, "the same command must give the same bytes")
	return back
}

func sampleJob() *drover.Job {
	return &drover.Job{
		ID: "web", Namespace: "default", Meta: map[string]string{"b": "2", "a": "1"}, Payload: []byte{0, 255, 1},
		TaskGroups: []*drover.TaskGroup{{
			Name: "g", Count: new(3), MaxRunDuration: new(time.Hour), Pool: &drover.WarmPool{Size: 2},
			Tasks: []*drover.Task{{
				Name: "t", Driver: "raw_exec",
				Config: map[string]any{
					"command": "/bin/true", "args": []any{"-a", "ü"}, "n": int64(-7), "f": 1.5, "b": true, "nil": nil,
					"nested": map[string]any{"x": []any{int64(1), map[string]any{"y": "z"}}},
				},
				Services: []*service.Service{{Checks: []map[string]any{{"type": "http"}}}},
			}},
		}},
	}
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 6, 0, 0, 123456789, time.UTC)
	node := &drover.Node{
		ID: "n1", SecretID: "secret", Events: []*drover.NodeEvent{{Message: "m", Timestamp: at}},
		DrainStrategy: &drover.DrainStrategy{DrainSpec: drover.DrainSpec{Deadline: time.Minute}, StartedAt: at},
		NodeResources: &drover.NodeResources{Cpu: drover.NodeCpuResources{CpuShares: 1, ReservableCpuCores: []uint16{1, 2}}},
	}
	alloc := &drover.Allocation{
		ID: "a1", TaskStates: map[string]*drover.TaskState{"t": {State: "dead", FinishedAt: at}},
		DeploymentStatus: &drover.AllocDeploymentStatus{Healthy: new(true), Timestamp: at},
		Claim:            &drover.Claim{RunnerID: "r", Labels: map[string]string{"k": "v"}},
	}
	for _, c := range []Command{
		&RegisterJob{Job: sampleJob(), EnforceIndex: true, JobModifyIndex: 1 << 63, Time: at.UnixNano()},
		&RegisterNode{Node: node},
		&ApplyPlans{Plans: []PlanCommit{{
			EvalID: "e", Job: sampleJob(), Placed: []*drover.Allocation{alloc}, Stopped: []StoppedAlloc{{ID: "x"}},
		}}},
		&UpdateAllocs{Nodes: []NodeUpdates{{NodeID: "n", Updates: []exchange.AllocUpdate{{ID: "a"}}}}},
		&Batch{Commands: []Command{&Barrier{}, &DeleteEvals{IDs: []string{"e"}}}},
		&TellExecutions{Events: []ExecutionEvent{{Type: "ExecutionEnded", Execution: execution.Execution{
			ID: "x", Spec: execution.Spec{Argv: []string{"a"}, Limits: drover.Limits{Wall: 1}}, Receipt: &execution.Receipt{
				StartedAt: at,
				ExitCode:  3,
			},
		}}}},
		&RecordExecutions{Told: []string{"x"}, Time: 1, Records: []ExecutionRecord{{Webhook: "h", Request: "r", Event: ExecutionEvent{
			Execution: execution.Execution{ID: "x", Receipt: &execution.Receipt{StartedAt: at}},
		}}}},
		&TransitionAllocs{Transitions: map[string]drover.DesiredTransition{"a": {Migrate: new(false)}}},
	} {
		require.Empty(t, cmp.Diff(c, roundTrip(t, c)), "%s", c.Kind())
	}
}

func TestPlansShare(t *testing.T) {
	t.Parallel()
	shared, metrics := &drover.AllocatedResources{Shared: drover.AllocatedSharedResources{DiskMB: 7}}, &drover.AllocationMetric{}
	in := &ApplyPlans{Plans: []PlanCommit{{Placed: []*drover.Allocation{
		{ID: "a", AllocatedResources: shared, Metrics: metrics}, {ID: "b", AllocatedResources: shared}, {ID: "c"},
	}}, {EvalID: "none placed"}}}
	out := roundTrip(t, in).(*ApplyPlans)
	p := out.Plans[0].Placed
	require.Same(t, p[0].AllocatedResources, p[1].AllocatedResources)
	require.Equal(t, shared, p[0].AllocatedResources)
	require.NotNil(t, p[0].Metrics)
	require.Nil(t, p[1].Metrics)
	require.Nil(t, p[2].AllocatedResources)
	require.Same(t, shared, in.Plans[0].Placed[0].AllocatedResources, "encoding changes nothing")
	data, err := Marshal([]byte{Version, byte(KindApplyPlans)}, &wirePlans{Plans: []wirePlan{{
		Commit: PlanCommit{Placed: []*drover.Allocation{{ID: "a"}}}, Refs: []wireRef{{R: 1}},
	}}})
	require.NoError(t, err)
	_, err = Decode(data)
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
}

func TestEveryKindHasAStructAndAName(t *testing.T) {
	t.Parallel()
	require.Len(t, kindNames, int(kindEnd))
	for k := Kind(1); k < kindEnd; k++ {
		require.NotNil(t, kinds[k], "%s", k)
		require.Equal(t, k, kinds[k]().Kind())
		roundTrip(t, kinds[k]())
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	good, err := Encode(&DeleteEvals{IDs: []string{"e"}})
	require.NoError(t, err)
	for name, data := range map[string][]byte{
		"empty":     {},
		"version":   append([]byte{9}, good[1:]...),
		"kind":      append([]byte{Version, 250}, good[2:]...),
		"truncated": good[:len(good)-1],
		"longer":    append(append([]byte{}, good...), 0),
	} {
		_, err := Decode(data)
		require.Equal(t, drover.Invalid, drover.CodeOf(err), name)
	}
	_, err = Encode(&Batch{Commands: []Command{&Batch{}}})
	require.Error(t, err)
}

func FuzzDecode(f *testing.F) {
	for k := Kind(1); k < kindEnd; k++ {
		data, err := Encode(kinds[k]())
		require.NoError(f, err)
		f.Add(data)
	}
	data, err := Encode(&RegisterJob{Job: sampleJob()})
	require.NoError(f, err)
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		if c, err := Decode(data); err == nil {
			_, err := Encode(c)
			require.NoError(t, err)
		}
	})
}
