package intake

import (
	"cmp"
	"context"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/quota"
	"github.com/drover-project/drover/tenancy"
)

// UpsertQuota stores a quota. Errors: Invalid, NotImplemented for limits that nobody here would heed.
func (in *Intake) UpsertQuota(ctx context.Context, q *tenancy.QuotaSpec) (drover.Outcome, error) {
	if q == nil {
		return drover.Outcome{}, drover.Errorf(drover.Invalid, "missing quota")
	}
	if err := quota.Complete(q); err != nil {
		return drover.Outcome{}, err
	}
	q.Here = cmp.Or(in.deps.Region, drover.DefaultRegion)
	return in.propose(ctx, &command.UpsertQuotas{Quotas: []*tenancy.QuotaSpec{q}})
}

// DeleteQuota removes a quota. Errors: NotFound, Conflict while a namespace refers to it.
func (in *Intake) DeleteQuota(ctx context.Context, name string) (drover.Outcome, error) {
	return in.propose(ctx, &command.DeleteQuotas{Names: []string{name}})
}
