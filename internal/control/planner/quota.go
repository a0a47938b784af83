package planner

import (
	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/quota"
)

// bill is what a plan adds to the account of its namespace.
type bill struct {
	view    *view
	account *quota.Account // the view's; nil: nothing limits the namespace
	after   quota.Account  // with what of the plan is accepted
}

// newBill opens the bill of a plan. Its placements are of one namespace, its job's.
func (v *view) newBill(plan *drover.Plan) *bill {
	b := &bill{view: v}
	for _, list := range plan.NodeAllocation {
		if len(list) > 0 {
			if b.account = v.account(list[0].Namespace); b.account != nil {
				b.after = *b.account
			}
			break
		}
	}
	return b
}

// take adds what is placed on a node, if the quota has as much; else it adds nothing and reports false.
func (b *bill) take(nodeID string, list []*drover.Allocation) bool {
	if b.account == nil {
		return true
	}
	next := b.after
	for _, a := range list {
		pool, more := quota.Pool(a.Job), b.view.costs(a)
		if planned := b.view.over[nodeID][a.ID]; planned != nil {
			more = more.Sub(b.view.costs(planned))
		}
		if len(next.Exceeds(pool, more)) > 0 {
			return false
		}
		next.Add(pool, more)
	}
	b.after = next
	return true
}

// settle counts what was taken for the plans that are checked later on the same view.
func (b *bill) settle() {
	if b.account != nil {
		*b.account = b.after
	}
}

// costs is how much more the account pays once the state has a.
func (v *view) costs(a *drover.Allocation) quota.Amount {
	stored := v.Allocation(a.ID)
	switch {
	case stored == nil:
		return quota.Held(a.AllocatedResources)
	case stored.HoldsResources():
		return quota.Held(a.AllocatedResources).Sub(quota.Held(stored.AllocatedResources)) // a claim stays
	}
	return quota.Amount{} // it ended meanwhile
}

// account is that of a namespace, with what accepted plans add; nil if nothing limits the namespace. Namespaces with the same quota
// share one.
func (v *view) account(namespace string) *quota.Account {
	account := v.QuotaAccount(namespace)
	if account == nil {
		return nil
	}
	if known := v.accounts[account.Quota]; known != nil {
		return known
	}
	for of, use := range v.acceptedUse() {
		if other := v.QuotaAccount(of); other != nil && other.Quota == account.Quota {
			account.Used = account.Used.Sum(use)
		}
	}
	if v.accounts == nil {
		v.accounts = map[string]*quota.Account{}
	}
	v.accounts[account.Quota] = account
	return account
}

// acceptedUse is what the plans that are accepted and not in the state add, by namespace. It is that of the view's beginning: what is
// accepted later, the accounts have.
func (v *view) acceptedUse() map[string]quota.Use {
	if v.accepted != nil {
		return v.accepted
	}
	v.accepted = map[string]quota.Use{}
	for _, list := range v.over {
		for _, a := range list {
			v.accepted[a.Namespace] = v.accepted[a.Namespace].Add(quota.Pool(a.Job), v.costs(a))
		}
	}
	return v.accepted
}
