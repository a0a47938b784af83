package fsm

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/quota"
	"github.com/drover-project/drover/secrets"
	"github.com/drover-project/drover/tenancy"
)

// tenancy draws a command about quotas, or about what counts in them.
func (d draw) tenancy(s *store.Snapshot) command.Command {
	namespace := d.pick("namespace", "default", "team", "other")
	switch rapid.IntRange(0, 8).Draw(d.t, "of tenancy") {
	case 0:
		return &command.UpsertQuotas{Quotas: []*tenancy.QuotaSpec{{
			Name: d.pick("quota", "a", "b"), Here: "global", Limits: []*tenancy.QuotaLimit{{
				Region: "global", RegionLimit: &tenancy.QuotaResources{CPU: new(rapid.IntRange(0, 500).Draw(d.t, "limit"))},
			}},
		}}}
	case 1:
		return &command.DeleteQuotas{Names: []string{d.pick("quota", "a", "b")}}
	case 2:
		return &command.UpsertNamespaces{Namespaces: []*tenancy.Namespace{{Name: namespace, Quota: d.pick("quota", "", "a", "b")}}}
	case 3:
		return &command.DeleteNamespaces{Names: []string{namespace}}
	case 4:
		op := rapid.SampledFrom([]command.VariableOp{command.PutVariable, command.DeleteVariable}).Draw(d.t, "op")
		data := make([]byte, rapid.IntRange(0, 9).Draw(d.t, "bytes"))
		v := &secrets.SealedVariable{Namespace: namespace, Path: d.id("v", 2), Data: data, KeyID: "k0"}
		return &command.ChangeVariable{Var: v, Op: op, Time: d.time()}
	case 6:
		return &command.BeginExecution{AllocID: d.id("a", 6), ID: d.id("x", 3)}
	case 7:
		x := execution.Execution{AllocID: d.id("a", 6), ID: d.id("x", 3), Running: rapid.Bool().Draw(d.t, "running")}
		x.Receipt = &execution.Receipt{UserCPU: 5, StdoutBytes: 7}
		return &command.TellExecutions{Time: d.time(), Events: []command.ExecutionEvent{{Type: "ExecutionEnded", Execution: x}}}
	case 5:
		return &command.Reap{Allocs: []string{d.id("a", 6)}}
	}
	c := &command.UpdateAllocs{Time: d.time()}
	for a := range s.Allocations("*", "") {
		if rapid.Bool().Draw(d.t, "ends") {
			u := exchange.AllocUpdate{ID: a.ID, ClientStatus: d.pick("to", "running", "complete", "failed"), Order: a.ModifyIndex}
			c.Nodes = append(c.Nodes, command.NodeUpdates{NodeID: a.NodeID, Updates: []exchange.AllocUpdate{u}})
		}
	}
	return c
}

// tenantsPlan places, changes and stops in a namespace, without a look at any quota.
func (d draw) tenantsPlan(s *store.Snapshot) command.Command {
	id := d.id("a", 6)
	pool := map[bool]string{false: "default", true: "gpu"}[id < "a3"] // a job's version is in one
	a := placed(id, "j-"+pool)
	a.Namespace, a.NodeID = d.pick("namespace", "default", "team"), homeOf(id)
	if old := s.Allocation(id); old != nil {
		a.Namespace = old.Namespace
	}
	j := job(a.JobID, "service", 1)
	j.Namespace, j.NodePool = a.Namespace, pool
	r := *a.AllocatedResources
	r.Tasks = map[string]*drover.AllocatedTaskResources{"t": {
		Cpu:     drover.AllocatedCpuResources{CpuShares: rapid.Int64Range(1, 100).Draw(d.t, "cpu")},
		Devices: []*drover.AllocatedDeviceResource{{Vendor: "v", Type: "gpu", Name: d.pick("model", "x", "y"), DeviceIDs: []string{"1"}}},
	}}
	a.AllocatedResources = &r
	c := command.PlanCommit{EvalID: "e", Job: j, Placed: []*drover.Allocation{a}}
	if rapid.Bool().Draw(d.t, "claimed") {
		a.Claim = &drover.Claim{RunnerID: "r"}
	}
	c.Stopped = []command.StoppedAlloc{{ID: d.id("a", 6), ClientStatus: d.pick("client", "", "lost", "unknown")}}
	return &command.ApplyPlans{Time: d.time(), Plans: []command.PlanCommit{c}}
}

// counted is what the namespaces of a quota use, counted anew from all that there is.
func counted(s *store.Snapshot, name string) (used quota.Use) {
	for n := range s.Namespaces() {
		if n.Quota != name {
			continue
		}
		for a := range s.Allocations(n.Name, "") {
			if a.HoldsResources() {
				used = used.Add(quota.Pool(a.Job), quota.Of(a))
			}
		}
		for x := range s.ExecutionSlots() {
			if a := s.Allocation(x.AllocID); x.Namespace == n.Name && a != nil && a.HoldsResources() { // of no others there are any
				used = used.Add("", quota.Amount{Executions: 1})
			}
		}
		for v := range s.Variables(n.Name, "") {
			used = used.Add("", quota.OfVariable(v))
		}
	}
	return used
}

// roomier notes of which quotas the machine says that they may have room again.
type roomier struct {
	Observers
	freed []string
}

func (r *roomier) QuotaFreed(_ uint64, name string) { r.freed = append(r.freed, name) }

// What the state counts of each quota is what its namespaces' allocations and variables sum up to, after any history and after a
// restore of its snapshot. Whoever waits for a quota hears when less of it is used, and when it changes.
func TestQuotasCountWhatIsThere(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		d := draw{rt}
		seen := &roomier{}
		f := New(store.New(), seen)
		for i := range rapid.IntRange(1, 60).Draw(rt, "commands") {
			s := f.store.Snapshot()
			c := d.tenantsPlan(s)
			if rapid.Bool().Draw(rt, "tenancy") {
				c = d.tenancy(s)
			}
			seen.freed = nil
			data, err := command.Encode(c)
			require.NoError(rt, err)
			_, _ = f.Apply(uint64(i+1), data) // what is refused changes nothing
			now := f.store.Snapshot()
			for _, name := range []string{"a", "b"} {
				require.Equal(rt, counted(now, name), now.QuotaUsed(name), "quota %s", name)
				less := now.QuotaUsed(name).LessThan(s.QuotaUsed(name)) || now.Quota(name) != nil && s.Quota(name) != now.Quota(name)
				require.True(rt, !less || slices.Contains(seen.freed, name), "quota %s has room and nobody was told", name)
			}
			for n := range now.Namespaces() {
				require.True(rt, n.Quota == "" || now.Quota(n.Quota) != nil, "namespace %s refers to what there is not", n.Name)
			}
		}
		var image bytes.Buffer
		require.NoError(rt, f.Snapshot(&image))
		g := New(store.New(), nil)
		require.NoError(rt, g.Restore(&image))
		require.Equal(rt, f.Hash(), g.Hash())
		for _, name := range []string{"a", "b"} {
			require.Equal(rt, f.store.Snapshot().QuotaUsed(name), g.store.Snapshot().QuotaUsed(name))
			require.Equal(rt, f.store.Snapshot().QuotaUsage(name, 0), g.store.Snapshot().QuotaUsage(name, 0))
		}
	})
}

// Servers that hand out runners of one namespace at the same time do not get more than its quota has: the log decides. What was answered
// before there was a limit is recorded whatever it is.
func TestClaimsOfSeveralServersStayWithinAQuota(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one, two := b.begin("one"), b.begin("two")
	b.pool(4)
	b.do(&command.UpsertQuotas{Quotas: []*tenancy.QuotaSpec{{Name: "q", Here: "global", Limits: []*tenancy.QuotaLimit{{
		Region: "global", RegionLimit: &tenancy.QuotaResources{Runners: new(1)},
	}}}}})
	b.do(&command.UpsertNamespaces{Namespaces: []*tenancy.Namespace{{Name: "default", Quota: "q"}}})
	claim := func(id string, bounded bool) error {
		c := command.RunnerClaim{AllocID: id, Claim: drover.Claim{RunnerID: "env-" + id}, Bounded: bounded}
		lease := b.now().Allocation(id).Lease
		require.Contains(t, []uint64{one, two}, lease)
		return b.do(&command.RecordRunners{Incarnation: lease, Claims: []command.RunnerClaim{c}}).([]command.ClaimResult)[0].Err
	}
	require.NoError(t, claim("a0", true))
	err := claim("a1", true)
	require.EqualError(t, err, `quota "q": runners exhausted (1 needed > 0 left of 1)`)
	require.Equal(t, drover.Exhausted, drover.CodeOf(err))
	require.Nil(t, b.now().Allocation("a1").Claim)
	require.NoError(t, claim("a0", true), "the same one again")
	require.NoError(t, claim("a2", false))
	require.Equal(t, int64(2), b.now().QuotaUsed("q").Total.Runners)
	b.do(update("a0", drover.AllocClientComplete))
	b.do(update("a2", drover.AllocClientComplete))
	require.NoError(t, claim("a1", true))
}
