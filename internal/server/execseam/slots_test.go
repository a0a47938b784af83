package execseam

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/exec/executor"
	"github.com/drover-project/drover/tenancy"
)

// An execution takes a slot only where a quota bounds them, and begins only while the day's budget lasts: what ended counts.
func TestSlotsAndTheDaysBudget(t *testing.T) {
	t.Parallel()
	state, control := controlled(t)
	txn := state.Begin(state.Index() + 1)
	for _, id := range []string{"a", "b"} {
		txn.PutAllocation(&drover.Allocation{ID: id, Namespace: "default", JobID: "j", ClientStatus: drover.AllocClientRunning})
	}
	txn.Commit()
	slots := Slots{Intake: control, Store: state, Clock: clock.Wall{}}
	take := func(allocID, id string) (bool, error) { return slots.Take(t.Context(), allocID, id) }
	slotsOf := func(s *store.Snapshot) (n int) {
		for range s.ExecutionSlots() {
			n++
		}
		return n
	}
	fresh, err := take("a", "x")
	require.NoError(t, err)
	require.False(t, fresh)
	require.Zero(t, slotsOf(state.Snapshot()), "nothing is bounded")

	limit := &tenancy.QuotaResources{Executions: new(1), ExecutionCPUSeconds: new(5)}
	q := &tenancy.QuotaSpec{Name: "q", Limits: []*tenancy.QuotaLimit{{Region: "global", RegionLimit: limit}}}
	_, err = control.UpsertQuota(t.Context(), q)
	require.NoError(t, err)
	_, err = control.UpsertNamespace(t.Context(), &tenancy.Namespace{Name: "default", Quota: "q"})
	require.NoError(t, err)
	fresh, err = take("a", "x")
	require.NoError(t, err)
	require.True(t, fresh)
	_, err = take("b", "y")
	require.ErrorContains(t, err, `quota "q": executions exhausted (1 needed > 0 left of 1)`)
	require.NoError(t, slots.GiveBack(t.Context(), "a", "x"))
	_, err = take("b", "y")
	require.NoError(t, err)

	ended := execution.Execution{ID: "y", AllocID: "b", Receipt: &execution.Receipt{UserCPU: 6 * time.Second}}
	tell := Teller{control, func() bool { return false }}
	require.NoError(t, tell.TellExecutions(t.Context(), []executor.Event{{Type: executor.EventEnded, Execution: ended}}))
	require.Zero(t, slotsOf(state.Snapshot()))
	_, err = take("b", "z")
	require.ErrorContains(t, err, `quota "q": execution_cpu_seconds exhausted (6.0 CPU-seconds used of 5 for today`)
	require.Equal(t, drover.Exhausted, drover.CodeOf(err))
}
