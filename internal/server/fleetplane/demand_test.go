package fleetplane

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/config/machines"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/fsm"
	"github.com/drover-project/drover/internal/control/scheduler/feasible"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/fleet/demand"
	"github.com/drover-project/drover/internal/fleet/gate"
	"github.com/drover-project/drover/internal/fleet/scaler"
)

// logged is a state machine that a view observes.
type logged struct {
	t     *testing.T
	state *store.Store
	fsm   *fsm.FSM
	view  *demand.View
	index uint64
}

func newLogged(t *testing.T) *logged {
	s := store.New()
	cfg := DemandConfig(&machines.Fleet{Providers: []*machines.Provider{{Name: "p", Type: "loopback"}}})
	l := &logged{t: t, state: s, view: demand.New(cfg, demand.Deps{State: func() demand.State { return s.Snapshot() }, Lacks: feasible.Lacks})}
	l.fsm = fsm.New(s, fsm.Observers{l.view})
	return l
}

func (l *logged) do(c command.Command) {
	l.t.Helper()
	l.index++
	data, err := command.Encode(c)
	require.NoError(l.t, err)
	_, err = l.fsm.Apply(l.index, data)
	require.NoError(l.t, err)
}

func (l *logged) counts(nodePool string) map[string]int {
	out := map[string]int{}
	list, _ := l.view.Demand(nodePool, "default")
	for _, c := range list {
		out[c.Name] = c.Count
	}
	return out
}

func batch(id, nodePool string, count int) *drover.Job {
	j := &drover.Job{
		ID: id, Name: id, Namespace: "default", Type: drover.JobTypeBatch, NodePool: nodePool, Priority: 50,
		TaskGroups: []*drover.TaskGroup{{Name: "g", Count: &count, Tasks: []*drover.Task{{
			Name: "t", Driver: "raw_exec",
			Resources: &drover.Resources{CPU: 500, MemoryMB: 100, Devices: []*drover.RequestedDevice{{Name: "gpu", Count: 2}}},
		}}}},
	}
	j.Canonicalize()
	return j
}

func blocked(job, id string, n int) []*drover.Evaluation {
	why := map[string]*drover.AllocationMetric{"g": {}}
	base := drover.Evaluation{Namespace: "default", JobID: job, Type: drover.JobTypeBatch, Priority: 50, CreateTime: 1000}
	first, waits := base, base
	first.ID, first.Status, first.FailedTGAllocs, first.BlockedEval = id+"-1", drover.EvalComplete, why, id
	first.QueuedAllocations = map[string]int{"g": n}
	waits.ID, waits.Status, waits.PreviousEval = id, drover.EvalBlocked, id+"-1"
	return []*drover.Evaluation{&waits, &first}
}

func TestDemandIsWhatTheSchedulerLeft(t *testing.T) {
	t.Parallel()
	l := newLogged(t)
	require.Empty(t, l.counts("default"))
	job := batch("a", "default", 10)
	l.do(&command.RegisterJob{Job: job, Time: 1})
	_, changed := l.view.Demand("default", "default")
	l.do(&command.UpdateEvals{Evals: blocked("a", "b1", 7)})
	select {
	case <-changed:
	default:
		t.Fatal("a change of demand was not told")
	}
	require.Equal(t, map[string]int{"a/g": 7}, l.counts("default"))
	list, _ := l.view.Demand("default", "default")
	require.Equal(t, drover.Capacity{CPU: 500, MemoryMB: 100, DiskMB: 300}, list[0].Each)
	require.Equal(t, map[string]int{"gpu": 2}, list[0].Devices)
	require.Empty(t, l.counts("other"), "it waits for other nodes")

	// What was placed since counts at once, before its evaluation says so: else it would be bought for twice.
	l.do(&command.ApplyPlans{Time: 2, Plans: []command.PlanCommit{{Job: job, Placed: []*drover.Allocation{
		placed("x1", "n", job), placed("x2", "n", job),
	}}}})
	require.Equal(t, map[string]int{"a/g": 5}, l.counts("default"))
	again := blocked("a", "b1", 7)[0]
	again.FailedTGAllocs, again.QueuedAllocations = map[string]*drover.AllocationMetric{"g": {}}, map[string]int{"g": 5}
	l.do(&command.UpdateEvals{Evals: []*drover.Evaluation{again}})
	require.Equal(t, map[string]int{"a/g": 5}, l.counts("default"), "counted once")

	l.view.Restored(l.index)
	require.Equal(t, map[string]int{"a/g": 5}, l.counts("default"), "a restart sees the same")

	done := *again
	done.Status, done.FailedTGAllocs = drover.EvalComplete, nil
	l.do(&command.UpdateEvals{Evals: []*drover.Evaluation{&done}})
	require.Empty(t, l.counts("default"))
}

// placed is an allocation of the job on the node that has not started yet.
func placed(id, node string, job *drover.Job) *drover.Allocation {
	return &drover.Allocation{
		ID: id, Namespace: "default", JobID: job.ID, TaskGroup: "g", NodeID: node, Job: job,
		DesiredStatus: drover.AllocDesiredRun, ClientStatus: drover.AllocClientPending,
	}
}

func TestDemandOfStoppedAndSystemJobs(t *testing.T) {
	t.Parallel()
	l := newLogged(t)
	l.do(&command.RegisterJob{Job: batch("anywhere", "all", 2), Time: 1})
	l.do(&command.UpdateEvals{Evals: blocked("anywhere", "b1", 2)})
	require.Equal(t, map[string]int{"anywhere/g": 2}, l.counts("default"), "the first pool serves those that may run anywhere")
	require.Empty(t, l.counts("other"))
	stopped := batch("anywhere", "all", 2)
	stopped.Stop = true
	l.do(&command.RegisterJob{Job: stopped, Time: 2})
	require.Empty(t, l.counts("default"))

	system := blocked("sys", "b2", 3)
	for _, e := range system {
		e.Type = drover.JobTypeSystem
	}
	l.do(&command.RegisterJob{Job: batch("sys", "default", 3), Time: 3})
	l.do(&command.UpdateEvals{Evals: system})
	require.Empty(t, l.counts("default"), "system jobs run on the machines that there are")
}

func TestNodesOfTheFleet(t *testing.T) {
	t.Parallel()
	l := newLogged(t)
	attributes := map[string]string{gate.AttributeInstance: "i1", "cpu.arch": "amd64"}
	node := &drover.Node{ID: "n1", Status: drover.NodeStatusReady, Attributes: attributes}
	l.do(&command.RegisterNode{Node: &drover.Node{ID: "n0", Status: drover.NodeStatusReady}, Time: 1})
	l.do(&command.RegisterNode{Node: node, Time: 1})
	list, changed := l.view.Nodes()
	require.Len(t, list, 1)
	require.Equal(t, "i1", list[0].Intent)
	require.True(t, list[0].Report.Ready)
	require.Zero(t, list[0].Report.Work)
	require.Equal(t, "amd64", list[0].Report.Attributes["cpu.arch"])
	require.NotContains(t, list[0].Report.Attributes, gate.AttributeInstance)

	job := batch("a", "default", 1)
	l.do(&command.ApplyPlans{Time: 2, Plans: []command.PlanCommit{{Job: job, Placed: []*drover.Allocation{
		placed("x1", "n1", job),
	}}}})
	select {
	case <-changed:
	default:
		t.Fatal("work on a machine was not told")
	}
	list, _ = l.view.Nodes()
	require.Equal(t, 1, list[0].Report.Work)
	require.False(t, list[0].Report.Movable, "batch work starts anew elsewhere")
	l.do(&command.SetEligibility{NodeID: "n1", Eligibility: drover.NodeIneligible, Time: 3})
	list, _ = l.view.Nodes()
	require.True(t, list[0].Report.Drained)
	l.do(&command.DeregisterNodes{IDs: []string{"n1"}, Time: 4})
	list, _ = l.view.Nodes()
	require.Empty(t, list)
}

func TestDemandStaysInItsDatacenters(t *testing.T) {
	t.Parallel()
	l := newLogged(t)
	job := batch("a", "default", 1)
	job.Datacenters = []string{"eu-*", "us.1"}
	l.do(&command.RegisterJob{Job: job, Time: 1})
	l.do(&command.UpdateEvals{Evals: blocked("a", "b1", 1)})
	list, _ := l.view.Demand("default", "default")
	for datacenter, want := range map[string]bool{"eu-west": true, "us.1": true, "usx1": false, "ap-eu-1": false} {
		o := fleet.Offering{
			Price: 1, Capacity: drover.Capacity{CPU: 4000, MemoryMB: 4000, DiskMB: 4000},
			Devices: map[string]int{"gpu": 8}, Attributes: map[string]string{"node.datacenter": datacenter},
		}
		_, ok := scaler.PricePerPiece(&o, &list[0], "p", "")
		require.Equal(t, want, ok, datacenter)
	}
}
