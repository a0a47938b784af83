package planner

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/fsm"
	"github.com/drover-project/drover/internal/control/scheduler"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/quota"
	"github.com/drover-project/drover/tenancy"
)

// sharedQuota limits all namespaces of a fake state together to so many MHz.
func sharedQuota(f *fakeState, cpu int) {
	f.accounts = func(s *fakeSnapshot, _ string) *quota.Account {
		a := &quota.Account{Quota: "q", Limits: &tenancy.QuotaLimit{RegionLimit: &tenancy.QuotaResources{CPU: &cpu}}}
		for _, x := range s.allocs {
			if x.HoldsResources() {
				a.Add(quota.Pool(x.Job), quota.Of(x))
			}
		}
		return a
	}
}

// Plans of several namespaces that share a quota are gathered while an entry is on its way: together they never get more than there is.
func TestPlansAtOnceNeverExceedAQuota(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFakeState()
		f.nodes["n"], f.nodes["m"] = node("n", 1<<30), node("m", 1<<30)
		f.gate, f.arrived = make(chan struct{}), make(chan struct{}, 100)
		sharedQuota(f, 1000)
		p := newPlanner(f, Config{MaxPlans: 3})
		start(t, p)
		var wg sync.WaitGroup
		var mu sync.Mutex
		placed := 0
		for i := range 40 {
			a, b := alloc(fmt.Sprint("a", i), "n", 60), alloc(fmt.Sprint("b", i), "m", 60)
			a.Namespace, b.Namespace = fmt.Sprint("ns", i%3), fmt.Sprint("ns", i%3)
			wg.Go(func() {
				r, err := p.Submit(t.Context(), place(a, b), nil)
				mu.Lock()
				defer mu.Unlock()
				placed += len(r.NodeAllocation)
				if err != nil || len(r.NodeAllocation) < 2 && r.RefreshIndex == 0 || len(r.RejectedNodes) > 0 {
					t.Errorf("%v %+v", err, r)
				}
			})
		}
		for {
			synctest.Wait()
			select {
			case <-f.arrived:
				f.gate <- struct{}{}
				continue
			default:
			}
			break
		}
		wg.Wait()
		require.Equal(t, 16, placed, "16 * 60 is the most that fits into 1000")
		require.Len(t, f.allocs, 16)
	})
}

func TestAllAtOnceTakesNothingOfAQuotaThatItExceeds(t *testing.T) {
	t.Parallel()
	f := newFakeState()
	f.nodes["n"], f.nodes["m"] = node("n", 1000), node("m", 1000)
	sharedQuota(f, 100)
	v := &view{Snapshot: f.snapshot(), over: overlay{}}
	big := place(alloc("a", "n", 60), alloc("b", "m", 60))
	big.AllAtOnce = true
	require.Empty(t, check(v, big).NodeAllocation)
	require.Len(t, check(v, place(alloc("c", "n", 100))).NodeAllocation, 1, "the quota is whole")
	require.Empty(t, check(v, place(alloc("d", "n", 1))).NodeAllocation)
}

// What is above a lowered limit may be changed in place to less, and not to more.
func TestInPlaceAboveAQuota(t *testing.T) {
	t.Parallel()
	f := newFakeState()
	f.nodes["n"] = node("n", 1000)
	f.allocs["a"] = alloc("a", "n", 60)
	sharedQuota(f, 10)
	require.Zero(t, Check(f.snapshot(), place(alloc("a", "n", 50))).RefreshIndex)
	require.NotZero(t, Check(f.snapshot(), place(alloc("a", "n", 61))).RefreshIndex)
}

// tenants is a state machine with two namespaces that share a quota, and the scheduler and the planner's check around it.
type tenants struct {
	*rapid.T
	log   *storeLog
	store *store.Store
	evals int
}

func (w *tenants) propose(c command.Command) {
	_, _, err := w.log.Propose(w.Context(), c)
	require.NoError(w, err)
}

// register registers a job of several allocations; what it asks for fits on the nodes.
func (w *tenants) register() {
	j := &drover.Job{
		ID: w.pick("job", "a", "b", "c"), Namespace: w.pick("namespace", "default", "team"), Type: drover.JobTypeBatch,
		TaskGroups: []*drover.TaskGroup{{
			Name: "g", Count: new(rapid.IntRange(0, 4).Draw(w.T, "count")),
			Tasks: []*drover.Task{{Name: "t", Driver: "fake", Resources: &drover.Resources{
				CPU: rapid.IntRange(1, 60).Draw(w.T, "cpu"), MemoryMB: rapid.IntRange(10, 60).Draw(w.T, "memory"),
			}}},
		}},
	}
	if rapid.Bool().Draw(w.T, "service") {
		j.Type = drover.JobTypeService
	}
	if old := w.store.Snapshot().Job(j.Namespace, j.ID); old != nil {
		j.Type = old.Type
	}
	j.Canonicalize()
	w.propose(&command.RegisterJob{Job: j, Eval: w.eval(j)})
}

func (w *tenants) pick(what string, of ...string) string {
	return rapid.SampledFrom(of).Draw(w.T, what)
}

func (w *tenants) eval(j *drover.Job) *drover.Evaluation {
	w.evals++
	return &drover.Evaluation{
		ID: fmt.Sprintf("e%03d", w.evals), Namespace: j.Namespace, JobID: j.ID, Type: j.Type, Priority: 50, Status: drover.EvalPending,
		TriggeredBy: drover.TriggerJobRegister,
	}
}

// stop stops a job, which its allocations do not heed before their nodes say so.
func (w *tenants) stop() {
	namespace, id := w.pick("namespace", "default", "team"), w.pick("job", "a", "b", "c")
	if j := w.store.Snapshot().Job(namespace, id); j != nil {
		w.propose(&command.DeregisterJob{Namespace: namespace, ID: id, Eval: w.eval(j)})
	}
}

// report has nodes say that some of the allocations ended or run.
func (w *tenants) report() {
	c := &command.UpdateAllocs{Time: int64(w.log.index)}
	for a := range w.store.Snapshot().Allocations("*", "") {
		if !a.ClientTerminal() && rapid.Bool().Draw(w.T, "tells") {
			u := exchange.AllocUpdate{ID: a.ID, ClientStatus: w.pick("to", "running", "complete", "failed"), Order: w.log.index}
			c.Nodes = append(c.Nodes, command.NodeUpdates{NodeID: a.NodeID, Updates: []exchange.AllocUpdate{u}})
		}
	}
	w.propose(c)
}

func (w *tenants) limit() {
	cpu, memory := rapid.IntRange(-1, 200).Draw(w.T, "cpu"), rapid.IntRange(0, 200).Draw(w.T, "memory")
	count := rapid.IntRange(0, 4).Draw(w.T, "count")
	w.propose(&command.UpsertQuotas{Quotas: []*tenancy.QuotaSpec{{Name: "q", Here: "global", Limits: []*tenancy.QuotaLimit{{
		Region: "global", RegionLimit: &tenancy.QuotaResources{CPU: &cpu, MemoryMB: &memory, Allocations: &count},
	}}}}})
}

// schedule answers all open evaluations on one state, as workers do that do not know of each other, and then checks and commits the plans
// in one entry, or one after the other.
func (w *tenants) schedule() {
	s := w.store.Snapshot()
	together := rapid.Bool().Draw(w.T, "together")
	v := &view{Snapshot: s, over: overlay{}}
	entry := &command.ApplyPlans{Time: int64(w.log.index)}
	for e := range s.Evaluations("*", "") {
		if e.Terminal() {
			continue
		}
		out := scheduler.Schedule(scheduler.Input{Eval: e, Snapshot: s, Now: time.Unix(int64(w.log.index), 0), Seed: w.log.index})
		for _, m := range out.Eval.FailedTGAllocs {
			require.NotEmpty(w, m.QuotaExhausted, "the nodes have room for all: %+v", m)
			require.Equal(w, "q", out.Eval.QuotaLimitReached)
		}
		if !together {
			v = &view{Snapshot: w.store.Snapshot(), over: overlay{}}
		}
		r := check(v, out.Plan)
		v.over.addResult(&r)
		entry.Plans = append(entry.Plans, command.Accept(out.Plan, &r))
		if r.RefreshIndex == 0 {
			entry.Evals = append(entry.Evals, append(out.NewEvals, out.Eval)...)
		}
		if !together {
			w.propose(entry)
			entry = &command.ApplyPlans{Time: int64(w.log.index)}
		}
	}
	if together {
		w.propose(entry)
	}
}

// Whatever happens, what is used of a quota is the sum over the allocations that hold something, and no placement leads beyond its limit.
func TestPlacementsStayWithinAQuota(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		st := store.New()
		w := &tenants{T: rt, log: &storeLog{fsm: fsm.New(st, nil)}, store: st}
		w.limit()
		w.propose(&command.UpsertNamespaces{Namespaces: []*tenancy.Namespace{{Name: "default", Quota: "q"}, {Name: "team", Quota: "q"}}})
		for _, id := range []string{"n", "m"} {
			n := node(id, 1<<30)
			n.Datacenter, n.NodePool = "dc1", drover.DefaultNodePool
			n.NodeResources.Memory.MemoryMB, n.NodeResources.Disk.DiskMB = 1<<30, 1<<30
			n.Drivers = map[string]*drover.DriverInfo{"fake": {Detected: true, Healthy: true}}
			n.Attributes = map[string]string{"driver.fake": "1"}
			w.propose(&command.RegisterNode{Node: n})
			w.propose(&command.UpdateNodeStatuses{Nodes: []command.NodeStatus{{NodeID: id, Status: drover.NodeStatusReady}}})
		}
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			before := st.Snapshot()
			step := rapid.IntRange(0, 5).Draw(rt, "step")
			[]func(){w.register, w.stop, w.report, w.limit, w.schedule, w.schedule}[step]()
			now := st.Snapshot()
			w.compare(now)
			if step < 4 {
				continue
			}
			var fresh quota.Amount
			for a := range now.Allocations("*", "") {
				if before.Allocation(a.ID) == nil {
					fresh = fresh.Add(quota.Of(a))
				}
			}
			account := now.QuotaAccount("default")
			account.Used.Total = account.Used.Total.Sub(fresh)
			require.Empty(rt, account.Exceeds("", fresh), "placed beyond the limit")
		}
	})
}

// compare counts all anew.
func (w *tenants) compare(s *store.Snapshot) {
	var sum quota.Amount
	for a := range s.Allocations("*", "") {
		if !slices.Contains([]string{drover.AllocClientComplete, drover.AllocClientFailed, drover.AllocClientLost}, a.ClientStatus) {
			sum = sum.Add(quota.Held(a.AllocatedResources))
		}
	}
	require.Equal(w, sum, s.QuotaUsed("q").Total)
}
