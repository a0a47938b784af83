package store

import (
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/quota"
	"github.com/drover-project/drover/internal/tables"
	"github.com/drover-project/drover/secrets"
	"github.com/drover-project/drover/tenancy"
)

// tableTenants counts what is used in each namespace; nobody watches it. It follows from the other tables.
const tableTenants = "tenants"

// indexQuota finds the namespaces of a quota.
const indexQuota = "quota"

func quotaKey(n *tenancy.Namespace) string {
	if n.Quota == "" {
		return ""
	}
	return term(n.Quota) + term(n.Name)
}

// tenantRow is what is used in a namespace.
type tenantRow struct {
	Namespace string
	Used      quota.Use
}

// Quota returns the quota or nil.
func (r *reader) Quota(name string) *tenancy.QuotaSpec {
	return get[tenancy.QuotaSpec](r, tables.Quotas, term(name))
}

// Quotas yields the quotas whose names begin with prefix, by name.
func (r *reader) Quotas(prefix string) iter.Seq[*tenancy.QuotaSpec] {
	return scan[tenancy.QuotaSpec](r, tables.Quotas, indexID, prefix)
}

// NamespacesOfQuota yields the namespaces that refer to the quota, by name.
func (r *reader) NamespacesOfQuota(name string) iter.Seq[*tenancy.Namespace] {
	return scan[tenancy.Namespace](r, tables.Namespaces, indexQuota, term(name))
}

// QuotaUsed returns what the namespaces that refer to the quota use together.
func (r *reader) QuotaUsed(name string) (used quota.Use) {
	for n := range r.NamespacesOfQuota(name) {
		if u := get[tenantRow](r, tableTenants, term(n.Name)); u != nil {
			used = used.Sum(u.Used)
		}
	}
	return used
}

// QuotaUsed returns what the namespaces of the quota use together, with what the transaction changed.
func (t *Txn) QuotaUsed(name string) (used quota.Use) {
	for n := range t.NamespacesOfQuota(name) {
		used = used.Sum(t.tenantUse(n.Name))
	}
	return used
}

// QuotaUsage returns what is used of a quota on a day (execution.Day) as its clients see it; nil if there is no such quota.
func (r *reader) QuotaUsage(name string, day int64) *tenancy.QuotaUsage {
	q := r.Quota(name)
	if q == nil {
		return nil
	}
	u := quota.Usage(q, r.QuotaUsed(name), r.QuotaSpent(name, day), r.QuotaFleetCost(name, day))
	u.ModifyIndex = max(u.ModifyIndex, r.TableIndex(tables.QuotaUsages))
	return u
}

// QuotaAccount returns the account that pays for what is in the namespace; nil if that is not limited here.
func (r *reader) QuotaAccount(namespace string) *quota.Account {
	return account(r, namespace, r.QuotaUsed)
}

// QuotaAccount is the reader's, with what the transaction changed.
func (t *Txn) QuotaAccount(namespace string) *quota.Account {
	return account(&t.reader, namespace, t.QuotaUsed)
}

func account(r *reader, namespace string, used func(string) quota.Use) *quota.Account {
	if r.tables[tables.Quotas] == 0 { // none was ever put: claims ask this
		return nil
	}
	n := r.Namespace(namespace)
	if n == nil || n.Quota == "" {
		return nil
	}
	q := r.Quota(n.Quota)
	if q == nil || q.Limit() == nil {
		return nil
	}
	return &quota.Account{Quota: q.Name, Limits: q.Limit(), Used: used(q.Name)}
}

// PutQuota stores the quota.
func (t *Txn) PutQuota(q *tenancy.QuotaSpec) {
	t.put(tables.Quotas, q.Name, q)
	t.requotaed[q.Name] = struct{}{}
	t.touch(tables.QuotaUsages, q.Name)
}

// DeleteQuota forgets the quota.
func (t *Txn) DeleteQuota(q *tenancy.QuotaSpec) {
	t.drop(tables.Quotas, q.Name, q)
	t.touch(tables.QuotaUsages, q.Name)
}

// requota wakes who watches the quotas that a namespace leaves or joins; each of the two may be nil.
func (t *Txn) requota(old, n *tenancy.Namespace) {
	left, joined := "", ""
	if old != nil {
		left = old.Quota
	}
	if n != nil {
		joined = n.Quota
	}
	if left == joined {
		return
	}
	for _, name := range []string{left, joined} {
		if name != "" {
			t.requotaed[name] = struct{}{}
			t.touch(tables.QuotaUsages, name)
		}
	}
}

// RestoreQuota stores a quota.
func (t *Txn) RestoreQuota(q *tenancy.QuotaSpec) { t.insert(tables.Quotas, q) }

// tenantUse is what is used in the namespace, with what the transaction changed.
func (t *Txn) tenantUse(namespace string) quota.Use {
	if used := t.tenants[namespace]; used != nil {
		return *used
	}
	if u := get[tenantRow](&t.reader, tableTenants, term(namespace)); u != nil {
		return u.Used
	}
	return quota.Use{}
}

// count counts a more in the namespace and node pool; "" is in none. A batch of allocations has one copy of the namespace's map.
func (t *Txn) count(namespace, pool string, a quota.Amount) {
	used := t.tenants[namespace]
	if used == nil {
		own := t.tenantUse(namespace).Clone()
		used = &own
		t.tenants[namespace] = used
	}
	used.Count(pool, a)
}

// charge counts what a namespace uses of allocations: old and a are the same one before and after; each may be nil.
func (t *Txn) charge(old, a *drover.Allocation) {
	if old != nil && a != nil && old.Job == a.Job && old.AllocatedResources == a.AllocatedResources &&
		old.HoldsResources() == a.HoldsResources() && (old.Claim == nil) == (a.Claim == nil) {
		return
	}
	if old != nil && old.HoldsResources() && (a == nil || !a.HoldsResources()) && t.tables[tables.ExecutionSlots] > 0 {
		t.dropSlots(old.ID)
	}
	if old != nil && old.HoldsResources() {
		t.count(old.Namespace, quota.Pool(old.Job), quota.Amount{}.Sub(quota.Of(old)))
	}
	if a != nil && a.HoldsResources() {
		t.count(a.Namespace, quota.Pool(a.Job), quota.Of(a))
	}
}

// ExecutionSlot returns the execution if it counts in a quota, else nil.
func (r *reader) ExecutionSlot(allocID, id string) *execution.Slot {
	return get[execution.Slot](r, tables.ExecutionSlots, term(allocID)+term(id))
}

// ExecutionSlots yields the executions that count in quotas, by runner and id.
func (r *reader) ExecutionSlots() iter.Seq[*execution.Slot] {
	return scan[execution.Slot](r, tables.ExecutionSlots, indexID, "")
}

// PutExecutionSlot counts an execution that does not count yet.
func (t *Txn) PutExecutionSlot(x *execution.Slot) {
	t.RestoreExecutionSlot(x)
	t.touch(tables.ExecutionSlots, "") // nobody watches a single one
}

// DropExecutionSlot counts an execution no more.
func (t *Txn) DropExecutionSlot(x *execution.Slot) {
	t.drop(tables.ExecutionSlots, "", x)
	t.count(x.Namespace, "", quota.Amount{}.Sub(quota.Amount{Executions: 1}))
}

// RestoreExecutionSlot counts an execution.
func (t *Txn) RestoreExecutionSlot(x *execution.Slot) {
	t.insert(tables.ExecutionSlots, x)
	t.count(x.Namespace, "", quota.Amount{Executions: 1})
}

// Spent returns what the namespace's executions used on the newest day on which some ended, or nil.
func (r *reader) Spent(namespace string) *execution.Spent {
	return get[execution.Spent](r, tables.ExecutionsSpent, term(namespace))
}

// AllSpent yields what executions used, by namespace.
func (r *reader) AllSpent() iter.Seq[*execution.Spent] {
	return scan[execution.Spent](r, tables.ExecutionsSpent, indexID, "")
}

// QuotaSpent returns what the executions of the quota's namespaces used on a day. What a clock that was ahead wrote counts for every day
// before it, too: a wrong clock gives nothing away.
func (r *reader) QuotaSpent(name string, day int64) execution.Spent {
	sum := execution.Spent{Day: day}
	for n := range r.NamespacesOfQuota(name) {
		if x := r.Spent(n.Name); x != nil && x.Day >= day {
			sum.CPU += x.CPU
			sum.Bytes += x.Bytes
		}
	}
	return sum
}

// QuotaFleetCost returns what the fleet's machines cost that the quota's namespaces used on a day (execution.Day).
func (r *reader) QuotaFleetCost(name string, day int64) (sum float64) {
	of := map[string]bool{}
	for n := range r.NamespacesOfQuota(name) {
		of[n.Name] = true
	}
	date := time.Unix(day*int64(24*time.Hour/time.Second), 0).UTC().Format(time.DateOnly)
	for c := range scan[fleet.Cost](r, tables.FleetCosts, indexID, term(date)) {
		if of[c.Namespace] {
			sum += c.Cost
		}
	}
	return sum
}

// PutSpent stores what the namespace's executions used.
func (t *Txn) PutSpent(x *execution.Spent) {
	t.put(tables.ExecutionsSpent, x.Namespace, x)
	if n := t.Namespace(x.Namespace); n != nil && n.Quota != "" {
		t.touch(tables.QuotaUsages, n.Quota)
	}
}

// RestoreSpent stores what a namespace's executions used.
func (t *Txn) RestoreSpent(x *execution.Spent) { t.insert(tables.ExecutionsSpent, x) }

// dropSlots counts the executions of a runner that ended no more.
func (t *Txn) dropSlots(allocID string) {
	for _, x := range slices.Collect(scan[execution.Slot](&t.reader, tables.ExecutionSlots, indexID, term(allocID))) {
		t.DropExecutionSlot(x)
	}
}

// chargeVariable counts what a namespace uses of variables: old and v are the same one before and after; each may be nil.
func (t *Txn) chargeVariable(old, v *secrets.SealedVariable) {
	if old != nil {
		t.count(old.Namespace, "", quota.Amount{}.Sub(quota.OfVariable(old)))
	}
	if v != nil {
		t.count(v.Namespace, "", quota.OfVariable(v))
	}
}

// flushTenants stores what is used in the namespaces, and wakes who watches the quotas that this counts in.
func (t *Txn) flushTenants() {
	for namespace, used := range t.tenants {
		row := &tenantRow{Namespace: namespace, Used: *used}
		if used.IsZero() {
			if old := get[tenantRow](&t.reader, tableTenants, term(namespace)); old != nil {
				t.remove(tableTenants, old)
			}
		} else {
			t.insert(tableTenants, row)
		}
		if n := t.Namespace(namespace); n != nil && n.Quota != "" && !t.restoring {
			t.touch(tables.QuotaUsages, n.Quota)
		}
	}
	clear(t.tenants)
}

// FreedQuotas returns, in their order, the quotas that may have room again, as the transaction uses less of them, changed them, or
// changed which namespaces refer to them.
func (t *Txn) FreedQuotas() []string {
	freed := maps.Clone(t.requotaed)
	for namespace, now := range t.tenants {
		n := t.Namespace(namespace)
		if n == nil || n.Quota == "" {
			continue
		}
		var before quota.Use
		if u := get[tenantRow](&t.reader, tableTenants, term(namespace)); u != nil {
			before = u.Used
		}
		if now.LessThan(before) {
			freed[n.Quota] = struct{}{}
		}
	}
	return slices.Sorted(maps.Keys(freed))
}
