package quotas

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/tenancy"
)

func TestQuotasAreDeletedWhenNothingRefersToThem(t *testing.T) {
	t.Parallel()
	s := store.New()
	txn := s.Begin(1)
	two := &command.UpsertQuotas{Quotas: []*tenancy.QuotaSpec{{Name: "a"}, {Name: "b"}}}
	require.NoError(t, Upsert(txn, 1, two))
	require.Error(t, Upsert(txn, 1, &command.UpsertQuotas{Quotas: []*tenancy.QuotaSpec{nil}}))
	n := &tenancy.Namespace{Name: "n", Quota: "a"}
	require.NoError(t, Check(txn, []*tenancy.Namespace{n}))
	require.ErrorContains(t, Check(txn, []*tenancy.Namespace{{Name: "m", Quota: "c"}}), `namespace "m": Quota: nonexistent quota "c"`)
	txn.PutNamespace(n)
	err := Delete(txn, &command.DeleteQuotas{Names: []string{"b", "a"}})
	require.ErrorContains(t, err, `quota "a" is in use: namespace "n" refers to it`)
	require.Equal(t, drover.Conflict, drover.CodeOf(err))
	require.NotNil(t, txn.Quota("b"), "all or none")
	require.Equal(t, drover.NotFound, drover.CodeOf(Delete(txn, &command.DeleteQuotas{Names: []string{"c"}})))
	txn.Commit()

	txn = s.Begin(2)
	require.NoError(t, Upsert(txn, 2, two))
	require.Equal(t, []uint64{1, 2}, []uint64{txn.Quota("a").CreateIndex, txn.Quota("a").ModifyIndex})
	txn.PutNamespace(&tenancy.Namespace{Name: "n"})
	require.NoError(t, Delete(txn, &command.DeleteQuotas{Names: []string{"b", "a", "a"}}))
	require.Nil(t, txn.Quota("a"))
	txn.Commit()
}

// Executions count from before they are started until they end, or their runner does; the same one counts once.
func TestExecutionsCount(t *testing.T) {
	t.Parallel()
	s := store.New()
	txn := s.Begin(1)
	q := &tenancy.QuotaSpec{Name: "q", Here: "global", Limits: []*tenancy.QuotaLimit{{
		Region: "global", RegionLimit: &tenancy.QuotaResources{Executions: new(2)},
	}}}
	require.NoError(t, Upsert(txn, 1, &command.UpsertQuotas{Quotas: []*tenancy.QuotaSpec{q}}))
	txn.PutNamespace(&tenancy.Namespace{Name: "default", Quota: "q"})
	runner := &drover.Allocation{ID: "a", Namespace: "default", JobID: "j", ClientStatus: drover.AllocClientRunning}
	txn.PutAllocation(runner)
	begin := func(id string) (bool, error) {
		return BeginExecution(txn, &command.BeginExecution{AllocID: "a", ID: id})
	}
	for _, id := range []string{"x", "y"} {
		fresh, err := begin(id)
		require.NoError(t, err)
		require.True(t, fresh)
	}
	fresh, err := begin("x")
	require.NoError(t, err)
	require.False(t, fresh, "a repetition takes no other")
	_, err = begin("z")
	require.EqualError(t, err, `quota "q": executions exhausted (1 needed > 0 left of 2)`)
	require.Equal(t, drover.Exhausted, drover.CodeOf(err))
	DropExecution(txn, "a", "x")
	DropExecution(txn, "a", "x")
	DropExecution(txn, "b", "y")
	_, err = begin("z")
	require.NoError(t, err)
	require.Equal(t, int64(2), txn.QuotaUsed("q").Total.Executions)
	ended := *runner
	ended.ClientStatus = drover.AllocClientComplete
	txn.PutAllocation(&ended)
	require.Zero(t, txn.QuotaUsed("q").Total.Executions)
	_, err = begin("w")
	require.Equal(t, drover.Gone, drover.CodeOf(err))
	_, err = BeginExecution(txn, &command.BeginExecution{AllocID: "nobody", ID: "w"})
	require.Equal(t, drover.Gone, drover.CodeOf(err))
	txn.Commit()
}

// What executions use counts for the day of the log, of whatever namespace their runner is; a clock that goes back begins no new day.
// What machines cost is the namespace's whose job used them.
func TestMachinesCost(t *testing.T) {
	t.Parallel()
	s := store.New()
	txn := s.Begin(1)
	for _, ns := range []string{"a", "b"} {
		txn.PutNamespace(&tenancy.Namespace{Name: ns, Quota: "q"})
	}
	for i, ns := range []string{"a", "a", "b", "default", ""} {
		txn.AddFleetCost(fleet.Cost{Day: "1970-01-06", Pool: "p", Namespace: ns, Job: "j", Cost: float64(int(1) << i)})
		txn.AddFleetCost(fleet.Cost{Day: "1970-01-07", Pool: "p", Namespace: ns, Job: "j", Cost: 100})
	}
	require.InDelta(t, 1+2+4, txn.QuotaFleetCost("q", 5), 1e-9)
	require.Zero(t, txn.QuotaFleetCost("q", 4))
	require.Zero(t, txn.QuotaFleetCost("r", 5))
	txn.Commit()
}

func TestExecutionsSpend(t *testing.T) {
	t.Parallel()
	s := store.New()
	txn := s.Begin(1)
	txn.PutNamespace(&tenancy.Namespace{Name: "team", Quota: "q"})
	txn.PutAllocation(&drover.Allocation{ID: "a", Namespace: "team", JobID: "j", ClientStatus: drover.AllocClientRunning})
	const day = int64(24 * time.Hour)
	spend := func(allocID string, now int64) {
		Spend(txn, &command.ExecutionEvent{Namespace: "default", Execution: execution.Execution{AllocID: allocID, Receipt: &execution.Receipt{
			UserCPU: time.Second, SystemCPU: time.Second, StdoutBytes: 10, StderrBytes: 5, StartedAt: time.Unix(1<<40, 0),
		}}}, now)
	}
	spend("a", 5*day)
	spend("a", 6*day-1)
	spend("b", 5*day) // of the namespace default, which has no quota
	spend("a", 0)
	require.Equal(t, execution.Spent{Day: 5, CPU: 4 * time.Second, Bytes: 30}, txn.QuotaSpent("q", 5))
	require.Zero(t, txn.QuotaSpent("q", 6).CPU, "the next day is another one")
	spend("a", 4*day)
	require.Equal(t, 6*time.Second, txn.QuotaSpent("q", 4).CPU)
	spend("a", 6*day)
	require.Equal(t, 2*time.Second, txn.QuotaSpent("q", 6).CPU)
	txn.DeleteNamespace(txn.Namespace("team"))
	require.Nil(t, txn.Spent("team"))
	txn.Commit()
}
