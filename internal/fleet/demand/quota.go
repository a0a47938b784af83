package demand

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/quota"
)

// purse has the accounts that what waits will be paid from, by quota. No machine is bought for what a quota would not let be placed.
type purse map[string]*quota.Account

// take returns how many of n allocations of the group its quota has room for, and counts them.
func (p purse) take(s State, j *drover.Job, g *drover.TaskGroup, n int) int {
	account := quota.AccountOf(s, j.Namespace)
	if account == nil {
		return n
	}
	if known := p[account.Quota]; known != nil {
		account = known
	}
	p[account.Quota] = account
	return account.Take(quota.Pool(j), quota.Asked(g, false), n)
}

// Costs is an optional power of State.
type Costs interface {
	// QuotaFleetCost returns what machines cost on a day (execution.Day) that the namespaces of the quota used.
	QuotaFleetCost(quota string, day int64) float64
}

// held says why no machine is bought for what waits in the namespace; "" if one may be.
func (p purse) held(s State, namespace string, now func() time.Time) string {
	account := quota.AccountOf(s, namespace)
	costs, known := s.(Costs)
	if !known || !account.BoundsFleet() {
		return ""
	}
	return account.FleetSpent(costs.QuotaFleetCost(account.Quota, execution.Day(now())))
}

// inOrder lists the work that waits in the order in which the scheduler would place it: by priority, then age.
func (v *View) inOrder(s State) []drover.NamespacedID {
	priority := func(key drover.NamespacedID) int {
		if j := s.Job(key.Namespace, key.ID); j != nil {
			return j.Priority
		}
		return 0
	}
	return slices.SortedFunc(maps.Keys(v.blocked), func(a, b drover.NamespacedID) int {
		return cmp.Or(
			cmp.Compare(priority(b), priority(a)), cmp.Compare(v.blocked[a].since, v.blocked[b].since),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.ID, b.ID),
		)
	})
}
