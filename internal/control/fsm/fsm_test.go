package fsm

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/exchange"
)

// recorder is an Observer that keeps what it was told.
type recorder struct {
	events []drover.Events
	evals  []*drover.Evaluation
	freed  []string
	jobs   []*drover.Job
	nodes  []*drover.Node
}

func (r *recorder) Events(e drover.Events) { r.events = append(r.events, e) }
func (r *recorder) EvaluationsChanged(_ uint64, e []*drover.Evaluation) {
	r.evals = append(r.evals, e...)
}
func (r *recorder) CapacityFreed(_ uint64, nodeID, _ string)       { r.freed = append(r.freed, nodeID) }
func (r *recorder) NodeChanged(_ uint64, _ string, n *drover.Node) { r.nodes = append(r.nodes, n) }
func (r *recorder) JobChanged(_ uint64, _ drover.NamespacedID, j *drover.Job) {
	r.jobs = append(r.jobs, j)
}

// bench is an FSM, its log, and what it told.
type bench struct {
	t     testing.TB
	f     *FSM
	told  *recorder
	index uint64
	log   [][]byte
}

func setup(t testing.TB) *bench {
	told := &recorder{}
	return &bench{t: t, f: New(store.New(), told), told: told}
}

func (b *bench) try(c command.Command) (any, error) {
	b.t.Helper()
	data, err := command.Encode(c)
	require.NoError(b.t, err)
	b.index++
	b.log = append(b.log, data)
	return b.f.Apply(b.index, data)
}

func (b *bench) do(c command.Command) any {
	b.t.Helper()
	v, err := b.try(c)
	require.NoError(b.t, err)
	return v
}

func (b *bench) now() *store.Snapshot { return b.f.Store().Snapshot() }

func (b *bench) lastTypes() []string {
	var out []string
	for _, e := range b.told.events[len(b.told.events)-1].Events {
		out = append(out, e.Topic+"/"+e.Type)
	}
	return out
}

func job(id, kind string, count int) *drover.Job {
	return &drover.Job{
		ID: id, Name: id, Namespace: "default", Type: kind, NodePool: "default", Priority: 50,
		TaskGroups: []*drover.TaskGroup{{Name: "g", Count: &count, Tasks: []*drover.Task{{
			Name: "t", Driver: "raw_exec", Config: map[string]any{"command": "/bin/true", "n": int64(1)},
		}}}},
	}
}

func eval(id, jobID, status string) *drover.Evaluation {
	return &drover.Evaluation{ID: id, Namespace: "default", JobID: jobID, Type: "batch", Status: status, Priority: 50}
}

func placed(id, jobID string) *drover.Allocation {
	return &drover.Allocation{
		ID: id, Namespace: "default", JobID: jobID, EvalID: "e-" + jobID, NodeID: "n1", TaskGroup: "g", Name: jobID + ".g[0]",
		AllocatedResources: &drover.AllocatedResources{
			Tasks: map[string]*drover.AllocatedTaskResources{"t": {
				Cpu: drover.AllocatedCpuResources{CpuShares: 100}, Memory: drover.AllocatedMemoryResources{MemoryMB: 64},
			}},
			Shared: drover.AllocatedSharedResources{DiskMB: 10},
		},
	}
}

func plan(j *drover.Job, allocs ...*drover.Allocation) *command.ApplyPlans {
	return &command.ApplyPlans{Time: 5, Plans: []command.PlanCommit{{EvalID: "e-" + j.ID, Job: j, Placed: allocs}}}
}

func update(id, status string) *command.UpdateAllocs {
	return &command.UpdateAllocs{Time: 9, Nodes: []command.NodeUpdates{{NodeID: "n1", Updates: []exchange.AllocUpdate{
		{ID: id, ClientStatus: status, TaskStates: map[string]*drover.TaskState{"t": {State: "running"}}},
	}}}}
}

func register(j *drover.Job) *command.RegisterJob {
	return &command.RegisterJob{Job: j, Eval: eval("e-"+j.ID, j.ID, drover.EvalPending), Time: 1}
}

func node(id string) *command.RegisterNode {
	return &command.RegisterNode{Time: int64(time.Second), Node: &drover.Node{
		ID: id, SecretID: "s-" + id, Status: drover.NodeStatusReady, ComputedClass: "c1",
		NodeResources: &drover.NodeResources{
			Cpu: drover.NodeCpuResources{CpuShares: 1000}, Memory: drover.NodeMemoryResources{MemoryMB: 1 << 20},
			Disk: drover.NodeDiskResources{DiskMB: 1 << 20},
		},
	}}
}

func TestBatchJobFromRegisterToDead(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.do(node("n1"))
	j := b.do(register(job("j", "batch", 1))).(*drover.Job)
	require.Equal(t, []string{"Job/JobRegistered", "Evaluation/JobRegistered"}, b.lastTypes())
	require.Equal(t, uint64(2), j.JobModifyIndex)
	require.Equal(t, j.JobModifyIndex, b.now().Evaluation("e-j").JobModifyIndex)
	require.Equal(t, "pending", b.now().Job("default", "j").Status)

	p := plan(j, placed("a", "j"))
	p.Evals = []*drover.Evaluation{eval("e-j", "j", drover.EvalComplete)}
	b.do(p)
	require.Equal(t, []string{"Job/PlanResult", "Evaluation/PlanResult", "Allocation/PlanResult"}, b.lastTypes())
	a := b.now().Allocation("a")
	require.Equal(t, "pending", a.ClientStatus)
	require.Same(t, b.now().JobVersions("default", "j")[0].TaskGroups[0], a.Job.TaskGroups[0])
	require.Equal(t, "running", b.now().Job("default", "j").Status)
	require.Equal(t, drover.Capacity{CPU: 100, MemoryMB: 64, DiskMB: 10}, b.now().Used("n1"))
	require.Equal(t, 1, b.now().JobSummary("default", "j").Summary["g"].Starting)

	b.do(update("a", "running"))
	require.Equal(t, uint64(3), b.now().Allocation("a").AllocModifyIndex, "a node's own update must not echo")
	require.Equal(t, uint64(4), b.now().Allocation("a").ModifyIndex)
	require.Equal(t, []string{"Allocation/AllocationUpdated"}, b.lastTypes())
	ev := b.told.events[len(b.told.events)-1].Events[0]
	require.Nil(t, ev.Payload["Allocation"].(*drover.Allocation).Job)
	require.Equal(t, []string{"j", ""}, ev.FilterKeys)

	b.do(update("a", "complete"))
	require.Equal(t, "dead", b.now().Job("default", "j").Status)
	require.Equal(t, drover.Capacity{}, b.now().Used("n1"))
	require.Equal(t, []string{"n1"}, b.told.freed)
	require.Equal(t, drover.TaskGroupSummary{Complete: 1}, b.now().JobSummary("default", "j").Summary["g"])

	b.do(update("a", "running"))
	require.Equal(t, "complete", b.now().Allocation("a").ClientStatus, "what ended does not come back")
}

// A registration says how many versions are kept, and so does a stop. What says nothing keeps all until the next one; older servers keep
// six.
func TestAsManyVersionsAreKeptAsARegistrationSays(t *testing.T) {
	t.Parallel()
	for _, version := range []int{prunesAtRegistrations - 1, prunesAtRegistrations} {
		b := setup(t)
		b.do(&command.RaiseVersion{Version: version})
		kept := func() int { return len(b.now().JobVersions("default", "j")) }
		for n := range 12 {
			c := register(job("j", "service", n+1))
			c.Versions = 9
			b.do(c)
		}
		require.Equal(t, 9, kept())
		b.do(&command.DeregisterJob{Namespace: "default", ID: "j"})
		require.Equal(t, map[int]int{prunesAtRegistrations - 1: 6, prunesAtRegistrations: 10}[version], kept())
		b.do(register(job("j", "service", 19)))
		b.do(&command.DeregisterJob{Namespace: "default", ID: "j", Versions: 4})
		require.Equal(t, map[int]int{prunesAtRegistrations - 1: 6, prunesAtRegistrations: 4}[version], kept())
		c := register(job("j", "service", 20))
		c.Versions = 3
		b.do(c)
		require.Equal(t, 3, kept())
	}
}

func TestVersionsMoveWithTheSpecification(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := b.do(register(job("j", "service", 1))).(*drover.Job)
	same := b.do(register(job("j", "service", 1))).(*drover.Job)
	require.Equal(t, uint64(0), same.Version)
	require.Equal(t, first.JobModifyIndex, same.JobModifyIndex)
	require.Equal(t, uint64(2), same.ModifyIndex)
	for n := 2; n < 12; n++ {
		j := b.do(register(job("j", "service", n))).(*drover.Job)
		require.Equal(t, uint64(n-1), j.Version)
		require.Equal(t, first.CreateIndex, j.CreateIndex)
		if n == 3 {
			b.do(&command.SetJobStability{Namespace: "default", ID: "j", Version: j.Version, Stable: true})
		}
	}
	var kept []uint64
	for _, v := range b.now().JobVersions("default", "j") {
		kept = append(kept, v.Version)
	}
	require.Equal(t, []uint64{10, 9, 8, 7, 6, 5, 2}, kept, "six, and the newest stable one")

	_, err := b.try(&command.RegisterJob{Job: job("j", "service", 1), EnforceIndex: true, JobModifyIndex: 1})
	require.Equal(t, drover.Conflict, drover.CodeOf(err))
	_, err = b.try(&command.RegisterJob{Job: job("new", "service", 1), EnforceIndex: true, JobModifyIndex: 7})
	require.Equal(t, drover.Conflict, drover.CodeOf(err))
	require.Equal(t, b.index, b.now().Index(), "a refused entry still moves the index")
}

func TestStopAndPurge(t *testing.T) {
	t.Parallel()
	b := setup(t)
	j := b.do(register(job("j", "service", 1))).(*drover.Job)
	b.do(&command.UpdateEvals{Evals: []*drover.Evaluation{eval("e-j", "j", drover.EvalComplete)}})
	require.Equal(t, "dead", b.now().Job("default", "j").Status, "nothing runs, and nothing is to be looked at")
	b.do(plan(j, placed("a", "j")))
	b.do(&command.DeregisterJob{Namespace: "default", ID: "j", Eval: eval("e2", "j", drover.EvalPending), Time: 3})
	require.True(t, b.now().Job("default", "j").Stop)
	require.Equal(t, uint64(1), b.now().Job("default", "j").Version)
	require.Equal(t, "running", b.now().Job("default", "j").Status)
	b.do(&command.ApplyPlans{
		Plans: []command.PlanCommit{{Stopped: []command.StoppedAlloc{{ID: "a", Description: "alloc not needed"}}}},
		Evals: []*drover.Evaluation{eval("e2", "j", drover.EvalComplete)}, Time: 4,
	})
	require.Equal(t, "dead", b.now().Job("default", "j").Status)
	require.NotZero(t, b.now().Used("n1"), "stopped, but the node did not say yet that it ended")
	b.do(plan(j, placed("a", "j")))
	require.Equal(t, "stop", b.now().Allocation("a").DesiredStatus, "a late plan does not revive it")
	b.do(&command.DeregisterJob{Namespace: "default", ID: "j", Purge: true})
	require.Nil(t, b.now().Job("default", "j"))
	require.Nil(t, b.now().JobSummary("default", "j"))
	require.Equal(t, []string{"Job/JobDeregistered"}, b.lastTypes())
	require.Equal(t, true, b.told.events[len(b.told.events)-1].Events[0].Payload["Deleted"])
	require.NotNil(t, b.now().Allocation("a").Job, "an allocation keeps its job")
	_, err := b.try(&command.DeregisterJob{Namespace: "default", ID: "j"})
	require.Equal(t, drover.NotFound, drover.CodeOf(err))
	b.do(update("a", "complete"))
	b.do(&command.Reap{Allocs: []string{"a"}, Evals: []string{"e-j", "e2"}})
	require.Empty(t, slices.Collect(b.now().AllocationsByJob("default", "j")))
}

func TestASummaryLeavesOutAnEarlierJobOfItsID(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.do(node("n1"))
	first := b.do(register(job("j", "service", 1))).(*drover.Job)
	b.do(plan(first, placed("a", "j")))
	b.do(plan(first, placed("b", "j")))
	b.do(update("a", "running"))
	b.do(&command.DeregisterJob{Namespace: "default", ID: "j", Purge: true})
	second := b.do(register(job("j", "service", 1))).(*drover.Job)
	b.do(update("a", "complete"))
	b.do(update("b", "running"))
	require.Equal(t, drover.TaskGroupSummary{}, b.now().JobSummary("default", "j").Summary["g"])
	b.do(plan(second, placed("c", "j")))
	b.do(update("b", "complete"))
	require.Equal(t, drover.TaskGroupSummary{Starting: 1}, b.now().JobSummary("default", "j").Summary["g"])
	b.do(&command.Reap{Allocs: []string{"a", "b"}})
	require.Equal(t, drover.TaskGroupSummary{Starting: 1}, b.now().JobSummary("default", "j").Summary["g"])
}

func TestExecutionsAreTold(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.do(&command.TellExecutions{Events: []command.ExecutionEvent{
		{Type: "ExecutionStarted", Namespace: "default", Execution: execution.Execution{ID: "x", RunnerID: "py-a1", AllocID: "a1"}},
		{
			Type: "ExecutionEnded", Namespace: "default",
			Execution: execution.Execution{ID: "x", RunnerID: "py-a1", AllocID: "a1", Receipt: &execution.Receipt{ExitCode: 3}},
		},
	}})
	require.Equal(t, []string{"Execution/ExecutionStarted", "Execution/ExecutionEnded"}, b.lastTypes())
	told := b.told.events[len(b.told.events)-1]
	require.Equal(t, "x", told.Events[1].Key)
	require.Equal(t, []string{"py-a1", "py", "a1"}, told.Events[1].FilterKeys)
	require.Equal(t, told.Index, told.Events[0].Index)

	b.do(&command.TellExecutions{Events: []command.ExecutionEvent{
		{Type: "ExecutionStarted", Namespace: "team", Execution: execution.Execution{ID: "y", RunnerID: "team~py-a2", AllocID: "a2"}},
	}})
	told = b.told.events[len(b.told.events)-1]
	require.Equal(t, "team", told.Events[0].Namespace)
	require.Equal(t, []string{"team~py-a2", "py", "a2"}, told.Events[0].FilterKeys, "as those of its runner's events")
}

func TestClaimOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	env := job("env", "service", 1)
	env.TaskGroups[0].Pool = &drover.WarmPool{Size: 1}
	j := b.do(register(env)).(*drover.Job)
	require.Contains(t, b.lastTypes(), "Environment/EnvironmentUpdated")
	b.do(plan(j, placed("a", "env")))
	b.do(update("a", "running"))
	require.Contains(t, b.lastTypes(), "Runner/RunnerWarm")
	claim := func(alloc, runner string) error {
		v := b.do(&command.ClaimRunners{Claims: []command.RunnerClaim{{AllocID: alloc, Claim: drover.Claim{RunnerID: runner}}}})
		return v.([]command.ClaimResult)[0].Err
	}
	require.NoError(t, claim("a", "r1"))
	require.Contains(t, b.lastTypes(), "Runner/RunnerClaimed")
	require.NoError(t, claim("a", "r1"), "recording twice is one claim")
	require.Equal(t, drover.Conflict, drover.CodeOf(claim("a", "r2")))
	require.Equal(t, drover.NotFound, drover.CodeOf(claim("x", "r2")))
	require.Equal(t, "r1", b.now().Allocation("a").Claim.RunnerID)
	b.do(plan(j, placed("a", "env")))
	require.NotNil(t, b.now().Allocation("a").Claim, "an update in place keeps the claim")
	b.do(&command.StopAllocs{IDs: []string{"a", "x"}, Description: "released", Time: 8})
	require.Contains(t, b.lastTypes(), "Runner/RunnerDraining")
	require.Equal(t, drover.Conflict, drover.CodeOf(claim("a", "r3")))
}

func TestNodeKeepsWhatControlDecided(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.do(node("n1"))
	b.do(&command.SetDrain{NodeID: "n1", Strategy: &drover.DrainStrategy{}, Time: 7})
	_, err := b.try(&command.SetEligibility{NodeID: "n1", Eligibility: drover.NodeEligible})
	require.Equal(t, drover.Conflict, drover.CodeOf(err))
	b.do(node("n1"))
	n := b.now().Node("n1")
	require.True(t, n.Drain)
	require.Equal(t, "ineligible", n.SchedulingEligibility)
	require.Len(t, n.Events, 1)
	b.do(&command.SetDrain{NodeID: "n1", MarkEligible: true, Completed: true, Time: 8})
	require.True(t, b.now().Node("n1").Ready())
	require.Equal(t, "complete", b.now().Node("n1").LastDrain.Status)
	stranger := node("n1")
	stranger.Node.SecretID = "other"
	_, err = b.try(stranger)
	require.Equal(t, drover.Forbidden, drover.CodeOf(err))
	b.do(&command.UpdateNodeStatuses{Time: 3e9, Nodes: []command.NodeStatus{
		{NodeID: "n1", Status: drover.NodeStatusDown, Event: &drover.NodeEvent{Message: "Node heartbeat missed"}}, {NodeID: "x"},
	}})
	require.Equal(t, int64(3), b.now().Node("n1").StatusUpdatedAt)
	b.do(&command.DeregisterNodes{IDs: []string{"n1"}})
	require.Equal(t, []string{"Node/NodeDeregistration"}, b.lastTypes())
	require.Nil(t, b.told.nodes[len(b.told.nodes)-1])
}

func TestDeploymentCounts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	j := b.do(register(job("j", "service", 2))).(*drover.Job)
	a1, a2 := placed("a1", "j"), placed("a2", "j")
	a1.DeploymentID, a2.DeploymentID = "d", "d"
	a2.DeploymentStatus = &drover.AllocDeploymentStatus{Canary: true}
	p := plan(j, a1, a2)
	p.Plans[0].Deployment = &drover.Deployment{
		ID: "d", Namespace: "default", JobID: "j", Status: drover.DeploymentRunning, JobVersion: j.Version,
		TaskGroups: map[string]*drover.DeploymentState{"g": {DesiredTotal: 2, DesiredCanaries: 1, ProgressDeadline: time.Minute}},
	}
	b.do(p)
	s := b.now().Deployment("d").TaskGroups["g"]
	require.Equal(t, 2, s.PlacedAllocs)
	require.Equal(t, []string{"a2"}, s.PlacedCanaries)
	require.Equal(t, time.Unix(60, 5).UTC(), s.RequireProgressBy)
	_, err := b.try(&command.PromoteDeployment{DeploymentID: "d"})
	require.Equal(t, drover.Conflict, drover.CodeOf(err))
	b.do(&command.SetAllocHealth{DeploymentID: "d", Healthy: []string{"a2"}, Unhealthy: []string{"a1"}, Time: 1e9})
	s = b.now().Deployment("d").TaskGroups["g"]
	require.Equal(t, []int{1, 1}, []int{s.HealthyAllocs, s.UnhealthyAllocs})
	require.Equal(t, time.Unix(61, 0).UTC(), s.RequireProgressBy)
	b.do(&command.PromoteDeployment{DeploymentID: "d"})
	require.True(t, b.now().Deployment("d").TaskGroups["g"].Promoted)
	require.False(t, b.now().Allocation("a2").DeploymentStatus.Canary)
	b.do(&command.UpdateDeploymentStatus{Update: &drover.DeploymentStatusUpdate{DeploymentID: "d", Status: drover.DeploymentSuccessful}})
	require.True(t, b.now().Job("default", "j").Stable)
	_, err = b.try(&command.UpdateDeploymentStatus{Update: &drover.DeploymentStatusUpdate{DeploymentID: "d", Status: "failed"}})
	require.Equal(t, drover.Conflict, drover.CodeOf(err))
}

func TestBatchOfCommandsFailsOneByOne(t *testing.T) {
	t.Parallel()
	b := setup(t)
	results := b.do(&command.Batch{Commands: []command.Command{
		register(job("a", "batch", 1)), &command.DeregisterJob{Namespace: "default", ID: "x"}, register(job("b", "batch", 1)),
	}}).([]command.Result)
	require.Equal(t, "a", results[0].Value.(*drover.Job).ID)
	require.Equal(t, drover.NotFound, drover.CodeOf(results[1].Err))
	require.NotNil(t, b.now().Job("default", "b"))
	require.Equal(t, b.now().Job("default", "a").CreateIndex, b.now().Job("default", "b").CreateIndex)
}

func TestChildrenAreCounted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	parent := job("p", "batch", 1)
	parent.Periodic = &drover.PeriodicConfig{}
	b.do(&command.RegisterJob{Job: parent})
	require.Equal(t, "running", b.now().Job("default", "p").Status)
	child := job("p/1", "batch", 1)
	child.ParentID = "p"
	j := b.do(register(child)).(*drover.Job)
	children := func() drover.JobChildrenSummary { return *b.now().JobSummary("default", "p").Children }
	require.Equal(t, drover.JobChildrenSummary{Pending: 1}, children())
	b.do(plan(j, placed("a", "p/1")))
	require.Equal(t, drover.JobChildrenSummary{Running: 1}, children())
	b.do(&command.UpdateEvals{Evals: []*drover.Evaluation{eval("e-p/1", "p/1", "complete")}})
	b.do(update("a", "complete"))
	b.do(&command.Reap{Jobs: []drover.NamespacedID{{Namespace: "default", ID: "p/1"}}})
	require.Equal(t, drover.JobChildrenSummary{Dead: 1}, children())
}

func TestUndecodableEntry(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := b.f.Apply(1, []byte{9, 9, 9})
	require.ErrorIs(t, err, ErrUndecodable)
	require.Zero(t, b.now().Index(), "the state is the one before the entry")
}
