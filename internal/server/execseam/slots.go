package execseam

import (
	"context"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/intake"
	"github.com/drover-project/drover/internal/control/store"
)

// Slots counts executions in the quota of their runner's namespace.
type Slots struct {
	Intake *intake.Intake
	Store  *store.Store
	Clock  clock.Clock
}

// Take implements executor.Slots. Where no quota bounds executions it writes nothing.
func (s Slots) Take(ctx context.Context, allocID, executionID string) (fresh bool, err error) {
	snap := s.Store.Snapshot()
	a := snap.Allocation(allocID)
	if a == nil {
		return false, nil
	}
	account := snap.QuotaAccount(a.Namespace)
	if account == nil {
		return false, nil
	}
	if err := account.Overspent(snap.QuotaSpent(account.Quota, execution.Day(s.Clock.Now()))); err != nil {
		return false, err
	}
	if !account.BoundsExecutions() {
		return false, nil
	}
	return s.Intake.BeginExecution(ctx, allocID, executionID)
}

// GiveBack implements executor.Slots.
func (s Slots) GiveBack(ctx context.Context, allocID, executionID string) error {
	return s.Intake.DropExecution(ctx, allocID, executionID)
}
