package demand

import (
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/constraint"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/gate"
	"github.com/drover-project/drover/internal/quota"
	"github.com/drover-project/drover/tenancy"
)

// world is a fake state, and the view that observes it.
type world struct {
	t      *testing.T
	view   *View
	jobs   map[drover.NamespacedID]*drover.Job
	evals  map[string]*drover.Evaluation
	allocs []*drover.Allocation
	nodes  map[string]*drover.Node
	pools  []*fleet.Pool
	lacks  map[string]string // by node
	waits  []float64
	cpu    *int // a quota of all jobs together
	budget *float64
	spent  float64 // today
	now    time.Time
}

func (w *world) QuotaAccount(string) *quota.Account {
	if w.cpu == nil && w.budget == nil {
		return nil
	}
	return &quota.Account{Quota: "q", Limits: &tenancy.QuotaLimit{RegionLimit: &tenancy.QuotaResources{CPU: w.cpu, FleetPerDay: w.budget}}}
}

func (w *world) QuotaFleetCost(_ string, day int64) float64 {
	if day != 0 {
		return 0
	}
	return w.spent
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		t: t, jobs: map[drover.NamespacedID]*drover.Job{}, evals: map[string]*drover.Evaluation{}, nodes: map[string]*drover.Node{},
		lacks: map[string]string{}, now: time.Unix(0, 0),
	}
	cfg := Config{
		BrokenAttribute: "unique.broken", InterruptedAttribute: "unique.interrupted",
		Local: func(p string) bool { return p == "here" },
	}
	lacks := func(_ *drover.Job, _ *drover.TaskGroup, n *drover.Node, _ func(*constraint.Constraint) bool) string {
		return w.lacks[n.ID]
	}
	w.view = New(cfg, Deps{State: func() State { return w }, Now: func() time.Time { return w.now }, Lacks: lacks})
	w.view.Listen(func(seconds float64, _ ...string) { w.waits = append(w.waits, seconds) })
	return w
}

func (w *world) Job(ns, id string) *drover.Job {
	return w.jobs[drover.NamespacedID{Namespace: ns, ID: id}]
}
func (w *world) Evaluation(id string) *drover.Evaluation { return w.evals[id] }
func (w *world) Node(id string) *drover.Node             { return w.nodes[id] }
func (w *world) Evaluations(string, string) iter.Seq[*drover.Evaluation] {
	return maps.Values(w.evals)
}
func (w *world) Nodes(string) iter.Seq[*drover.Node] { return maps.Values(w.nodes) }
func (w *world) FleetPools() iter.Seq[*fleet.Pool]   { return slices.Values(w.pools) }
func (w *world) on(node string) iter.Seq[*drover.Allocation] {
	return w.filtered(func(a *drover.Allocation) bool { return a.NodeID == node })
}
func (w *world) UnfinishedByNode(node string) iter.Seq[*drover.Allocation] { return w.on(node) }

func (w *world) ActiveAllocationsByJob(ns, id string) iter.Seq[*drover.Allocation] {
	return w.filtered(func(a *drover.Allocation) bool { return a.Namespace == ns && a.JobID == id })
}

func (w *world) filtered(is func(*drover.Allocation) bool) iter.Seq[*drover.Allocation] {
	return func(yield func(*drover.Allocation) bool) {
		for _, a := range w.allocs {
			if is(a) && !yield(a) {
				return
			}
		}
	}
}

// job puts a job of one group into the state.
func (w *world) job(id, nodePool string, count int) *drover.Job {
	j := &drover.Job{
		ID: id, Namespace: "default", Type: drover.JobTypeBatch, NodePool: nodePool, Priority: 50,
		TaskGroups: []*drover.TaskGroup{{Name: "g", Count: &count, Tasks: []*drover.Task{{
			Name: "t", Driver: "sandbox", Resources: &drover.Resources{CPU: 500, MemoryMB: 100},
		}}}},
	}
	j.Canonicalize()
	w.jobs[drover.NamespacedID{Namespace: "default", ID: id}] = j
	return j
}

// leave tells the view that the scheduler left n of the job's pieces.
func (w *world) leave(job, eval string, n int) {
	done := &drover.Evaluation{
		ID: eval + "-1", Namespace: "default", JobID: job, Type: drover.JobTypeBatch, Status: drover.EvalComplete, CreateTime: 1e9,
		FailedTGAllocs: map[string]*drover.AllocationMetric{"g": {}}, QueuedAllocations: map[string]int{"g": n}, BlockedEval: eval,
	}
	waits := &drover.Evaluation{
		ID: eval, Namespace: "default", JobID: job, Type: drover.JobTypeBatch, Status: drover.EvalBlocked, CreateTime: 1e9, PreviousEval: done.ID,
	}
	w.evals[done.ID], w.evals[eval] = done, waits
	w.view.EvaluationsChanged(1, []*drover.Evaluation{waits, done})
}

// place runs a piece of the job on a node, and tells the view.
func (w *world) place(j *drover.Job, id, node string) *drover.Allocation {
	a := &drover.Allocation{
		ID: id, Namespace: "default", JobID: j.ID, Job: j, TaskGroup: "g", NodeID: node, CreateIndex: 7, CreateTime: 5e9,
		DesiredStatus: drover.AllocDesiredRun, ClientStatus: drover.AllocClientPending,
	}
	w.allocs = append(w.allocs, a)
	w.view.Events(drover.Events{Index: 7, Events: []drover.Event{{Topic: drover.TopicAllocation, Payload: map[string]any{"Allocation": a}}}})
	return a
}

func (w *world) counts(nodePool string) map[string]int {
	out := map[string]int{}
	list, _ := w.view.Demand(nodePool, "default")
	for _, c := range list {
		out[c.Name] = c.Count
	}
	return out
}

func closed(t *testing.T, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	default:
		t.Fatal("the change was not announced")
	}
}

func TestDemandIsWhatTheSchedulerLeftLessWhatWasPlacedSince(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	require.Empty(t, w.counts("default"))
	j := w.job("a", "default", 10)
	_, changed := w.view.Demand("default", "default")
	w.leave("a", "e", 7)
	closed(t, changed)
	require.Equal(t, map[string]int{"a/g": 7}, w.counts("default"))
	require.Empty(t, w.counts("other"))
	_, changed = w.view.Demand("default", "default")
	w.place(j, "x", "n")
	closed(t, changed)
	require.Equal(t, map[string]int{"a/g": 6}, w.counts("default"))
	require.Equal(t, []float64{4}, w.waits, "it waited from second 1 to second 5")
	w.leave("a", "e2", 6)
	require.Equal(t, map[string]int{"a/g": 6}, w.counts("default"), "counted once")

	done := *w.evals["e2"]
	done.Status = drover.EvalComplete
	_, changed = w.view.Demand("default", "default")
	w.view.EvaluationsChanged(2, []*drover.Evaluation{&done})
	closed(t, changed)
	require.Empty(t, w.counts("default"))
}

// No machine is bought for what its quota would not let be placed: of several jobs together, the most urgent first.
func TestDemandIsWithinTheQuota(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.job("a", "default", 10)
	w.job("b", "default", 10).Priority = 70
	w.leave("a", "e", 7)
	w.leave("b", "f", 3)
	w.cpu = new(2600) // each asks for 500
	require.Equal(t, map[string]int{"b/g": 3, "a/g": 2}, w.counts("default"))
	w.cpu = new(-1)
	require.Empty(t, w.counts("default"))
	w.cpu = nil

	reached := *w.evals["e-1"]
	reached.FailedTGAllocs = map[string]*drover.AllocationMetric{"g": {QuotaExhausted: []string{"cpu exhausted"}}}
	waits := *w.evals["e"]
	waits.QuotaLimitReached = "q"
	w.view.EvaluationsChanged(2, []*drover.Evaluation{&waits, &reached})
	require.Equal(t, map[string]int{"b/g": 3}, w.counts("default"), "what waits for its quota waits for no machine")
}

// What a quota's budget for machines does not pay waits, and says why.
func TestWhatABudgetDoesNotPay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.job("a", "default", 10)
	w.leave("a", "e", 7)
	held := func() string {
		list, _ := w.view.Demand("default", "default")
		require.Len(t, list, 1)
		return list[0].Held
	}
	w.spent = 4
	require.Empty(t, held())
	w.budget = new(4.5)
	require.Empty(t, held())
	w.spent = 4.5
	require.Equal(t, `quota "q": fleet_per_day exhausted (4.50 spent of 4.50 for today, which ends at 00:00 UTC)`, held())
	w.now = w.now.Add(24 * time.Hour)
	require.Empty(t, held(), "the next day has its own")
	w.budget = new(-1.0)
	require.NotEmpty(t, held())
}

func TestAStoppedJobWantsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	j := w.job("a", "default", 2)
	w.leave("a", "e", 2)
	stopped := *j
	stopped.Stop = true
	w.view.JobChanged(2, drover.NamespacedID{Namespace: "default", ID: "a"}, &stopped)
	require.Empty(t, w.counts("default"))
	w.leave("a", "e", 2)
	w.view.JobChanged(3, drover.NamespacedID{Namespace: "default", ID: "a"}, nil)
	require.Empty(t, w.counts("default"))
}

func TestWhoWantsNoMachines(t *testing.T) {
	t.Parallel()
	why := map[string]*drover.AllocationMetric{"g": {}}
	for _, c := range []struct {
		eval drover.Evaluation
		want bool
	}{
		{drover.Evaluation{Type: drover.JobTypeSystem, FailedTGAllocs: why}, false},
		{drover.Evaluation{Type: drover.JobTypeSysBatch, FailedTGAllocs: why}, false},
		{drover.Evaluation{Type: drover.JobTypeBatch, TriggeredBy: drover.TriggerMaxPlanAttempts}, false},
		{drover.Evaluation{Type: drover.JobTypeBatch, TriggeredBy: drover.TriggerMaxPlanAttempts, FailedTGAllocs: why}, true},
		{drover.Evaluation{Type: drover.JobTypeService, FailedTGAllocs: why}, true},
	} {
		require.Equal(t, c.want, wantsMachines(&c.eval), "%+v", c.eval)
	}
}

func TestWorkThatMayRunAnywhereCountsForTheFirstPool(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.job("a", drover.AllNodePool, 2)
	w.leave("a", "e", 2)
	require.Equal(t, map[string]int{"a/g": 2}, w.counts("default"))
	require.Empty(t, w.counts("other"))
}

// After a restart the scheduler's last words count if they are still there; else the job's pieces are counted.
func TestARestartFindsTheDemand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	j := w.job("a", "default", 10)
	w.leave("a", "e", 7)
	w.view.Restored(1)
	require.Equal(t, map[string]int{"a/g": 7}, w.counts("default"))
	delete(w.evals, "e-1")
	w.place(j, "x", "n")
	done := w.place(j, "y", "n")
	done.DesiredStatus, done.ClientStatus = drover.AllocDesiredStop, drover.AllocClientComplete
	w.view.Restored(1)
	require.Equal(t, map[string]int{"a/g": 9}, w.counts("default"))
	j.TaskGroups[0].Pool = &drover.WarmPool{Size: 4, Demand: 2}
	w.allocs[0].Claim = &drover.Claim{}
	require.Equal(t, map[string]int{"a/g": 6}, w.counts("default"), "a runner that was claimed is none of the pool")
}

func TestClassesSayWhatAPieceNeeds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	j := w.job("a", "default", 1)
	j.Datacenters, j.Priority = []string{"eu-*", "us.1"}, 70
	j.Constraints = []*constraint.Constraint{{LTarget: "${attr.kernel.name}", RTarget: "linux"}}
	g := j.TaskGroups[0]
	g.Constraints = []*constraint.Constraint{{LTarget: "${meta.rack}", RTarget: "r1"}}
	g.Tasks[0].Constraints = []*constraint.Constraint{{LTarget: "${node.class}", RTarget: "big"}}
	g.Tasks[0].Resources.Cores = 2
	g.Tasks[0].Resources.Devices = []*drover.RequestedDevice{
		{Name: "gpu", Count: 2, Constraints: []*constraint.Constraint{{LTarget: "${device.model}", RTarget: "x"}}}, {Name: "gpu"},
	}
	c := classOf(j, g, 3, int64(time.Second))
	require.Equal(t, "a/g", c.Name)
	require.Equal(t, 3, c.Count)
	require.Equal(t, 70, c.Priority)
	require.Equal(t, time.Unix(1, 0), c.Since)
	require.Equal(t, g.Asked().CPU+2*coreMHz, c.Each.CPU)
	require.Equal(t, map[string]int{"gpu": 3}, c.Devices)
	var targets []string
	for _, x := range c.Constraints {
		targets = append(targets, x.LTarget)
	}
	require.Equal(t, []string{"${attr.kernel.name}", "${meta.rack}", "${node.datacenter}", "${node.class}", "${device.model}"}, targets)
	require.Equal(t, `^(?:eu-.*|us\.1)$`, c.Constraints[2].RTarget)
	j.Namespace = "team"
	require.Equal(t, "team/a/g", classOf(j, g, 3, 0).Name)
	require.Nil(t, datacenterConstraint([]string{"a", "*"}))
	require.Nil(t, datacenterConstraint(nil))
}

func TestNodesAreReportedUnderTheirMachines(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	put := func(n *drover.Node) {
		w.nodes[n.ID] = n
		w.view.NodeChanged(1, n.ID, n)
	}
	put(&drover.Node{ID: "n0", Status: drover.NodeStatusReady})
	_, changed := w.view.Nodes()
	put(&drover.Node{
		ID: "n1", Status: drover.NodeStatusReady, SchedulingEligibility: drover.NodeEligible, Datacenter: "dc", NodePool: "cloud",
		Attributes: map[string]string{gate.AttributeInstance: "i1", "cpu.arch": "amd64"}, Meta: map[string]string{"rack": "r1"},
	})
	closed(t, changed)
	list, changed := w.view.Nodes()
	require.Len(t, list, 1, "others are no machines of the fleet")
	require.Equal(t, "i1", list[0].Intent)
	require.False(t, list[0].Lost)
	require.True(t, list[0].Report.Ready)
	require.False(t, list[0].Report.Drained)
	require.Equal(t, map[string]string{
		"cpu.arch": "amd64", "meta.rack": "r1", "node.datacenter": "dc", "node.pool": "cloud",
		"node.class": "",
	}, list[0].Report.Attributes)

	service, system := w.job("s", "cloud", 1), w.job("sys", "cloud", 1)
	service.Type, system.Type = drover.JobTypeService, drover.JobTypeSystem
	w.place(service, "x", "n1")
	closed(t, changed)
	w.place(system, "y", "n1")
	list, _ = w.view.Nodes()
	require.Equal(t, 1, list[0].Report.Work, "what runs on every machine keeps none")
	require.True(t, list[0].Report.Movable)
	require.Len(t, list[0].Report.Jobs, 2)
	w.place(w.job("b", "cloud", 1), "z", "n1")
	list, _ = w.view.Nodes()
	require.False(t, list[0].Report.Movable, "batch work starts anew elsewhere")

	at := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	put(&drover.Node{ID: "n1", Status: drover.NodeStatusDown, Attributes: map[string]string{
		gate.AttributeInstance: "i1", "unique.broken": "disk", "unique.interrupted": at.Format(time.RFC3339),
	}})
	list, _ = w.view.Nodes()
	require.True(t, list[0].Lost)
	require.Equal(t, "disk", list[0].Report.Broken)
	require.Nil(t, list[0].Report.Attributes, "it is not what others of its kind will be")
	require.True(t, at.Equal(list[0].Report.InterruptAt))
	delete(w.nodes, "n1")
	w.view.NodeChanged(2, "n1", nil)
	list, _ = w.view.Nodes()
	require.Empty(t, list)
	w.nodes["n2"] = &drover.Node{ID: "n2", Attributes: map[string]string{gate.AttributeInstance: "i2"}}
	w.view.Restored(3)
	list, _ = w.view.Nodes()
	require.Len(t, list, 1, "a restart finds the machines")
}

// Before a machine was seen, its configuration says what it surely does not have.
func TestDriversThatMachinesSurelyLack(t *testing.T) {
	t.Parallel()
	ours, own := &fleet.Policy{}, &fleet.Policy{UserData: "${config}\nplugin \"raw_exec\" {}"}
	ssh := &fleet.Policy{SSH: &fleet.SSH{Config: "own"}}
	for _, c := range []struct {
		policy *fleet.Policy
		local  bool
		driver string
		lacks  bool
	}{
		{ours, true, "raw_exec", true},
		{ours, true, "docker", true},
		{ours, true, "sandbox", false},
		{ours, false, "docker", false},
		{ours, false, "raw_exec", true},
		{own, true, "raw_exec", false},
		{own, true, "docker", false},
		{own, true, "podman", false},
		{ours, false, "podman", true},
		{own, true, "virt", true},
		{ours, true, "exec", false},
		{ours, true, "java", false},
		{ssh, true, "raw_exec", false},
	} {
		g := &drover.TaskGroup{Tasks: []*drover.Task{{Driver: "sandbox"}, {Driver: c.driver}}}
		require.Equal(t, c.lacks, missingDriver(c.policy, g, c.local) == c.driver, "%s, local %t", c.driver, c.local)
	}
}

func TestMachinesThatWereSeenRefuseWork(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pools = []*fleet.Pool{{Name: "std", Policy: &fleet.Policy{Name: "std", NodePool: "default", Provider: "here"}}}
	w.job("a", "default", 1)
	w.leave("a", "e", 1)
	refusals := func() string {
		list, _ := w.view.Demand("default", "default")
		var out []string
		for _, r := range list[0].Refusals {
			out = append(out, r.Pool+"/"+r.Template+"/"+r.Type+" "+r.Needs)
		}
		return strings.Join(out, ", ")
	}
	see := func(id, typ, needs string, created uint64) {
		w.lacks[id] = needs
		n := &drover.Node{
			ID: id, Status: drover.NodeStatusReady, NodePool: "default", CreateIndex: created, ComputedClass: id,
			Drivers: map[string]*drover.DriverInfo{"sandbox": {Detected: true}},
			Attributes: map[string]string{
				gate.AttributeInstance: id, gate.AttributePool: "std", gate.AttributeTemplate: "x", gate.AttributeType: typ,
			},
		}
		w.nodes[id] = n
		w.view.NodeChanged(created, id, n)
	}
	require.Empty(t, refusals())
	_, changed := w.view.Demand("default", "default")
	see("n1", "small", "host volume data", 1)
	w.view.Nodes()
	closed(t, changed)
	require.Equal(t, "std/x/small host volume data", refusals(), "another type may have it")
	see("n2", "small", "driver java", 2)
	require.Equal(t, "std/x/small driver java, std/x/ driver java", refusals(), "the template says which drivers there are")
	see("n3", "big", "", 3)
	require.Equal(t, "std/x/small driver java", refusals(), "one type has it")
	for _, n := range w.nodes {
		delete(w.nodes, n.ID)
		w.view.NodeChanged(4, n.ID, nil)
	}
	w.view.Nodes()
	require.Equal(t, "std/x/small driver java", refusals(), "it is known still when the machines are gone")
	see("n0", "small", "", 1)
	require.Equal(t, "std/x/small driver java", refusals(), "an older machine says nothing new")

	require.True(t, aboutPlace(&constraint.Constraint{LTarget: "${attr.platform.zone}"}))
	require.True(t, aboutPlace(&constraint.Constraint{RTarget: "${attr.platform.market}"}))
	require.False(t, aboutPlace(&constraint.Constraint{LTarget: "${attr.platform.type}"}))
}
