package quotas

import (
	"slices"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/quota"
	"github.com/drover-project/drover/tenancy"
)

// Upsert applies the command; a quota that exists keeps its creation index. Errors: Invalid.
func Upsert(txn *store.Txn, index uint64, c *command.UpsertQuotas) error {
	for _, q := range c.Quotas {
		if q == nil || q.Name == "" {
			return drover.Errorf(drover.Invalid, "missing quota")
		}
	}
	for _, q := range c.Quotas {
		next := *q
		next.CreateIndex, next.ModifyIndex = index, index
		if old := txn.Quota(q.Name); old != nil {
			next.CreateIndex = old.CreateIndex
		}
		txn.PutQuota(&next)
	}
	return nil
}

// Delete applies the command. Errors: NotFound, Conflict.
func Delete(txn *store.Txn, c *command.DeleteQuotas) error {
	var doomed []*tenancy.QuotaSpec
	for _, name := range c.Names {
		q := txn.Quota(name)
		if q == nil {
			return NotFound(name)
		}
		for n := range txn.NamespacesOfQuota(name) {
			return drover.Errorf(drover.Conflict, "quota %q is in use: namespace %q refers to it", name, n.Name)
		}
		if !slices.Contains(doomed, q) {
			doomed = append(doomed, q)
		}
	}
	for _, q := range doomed {
		txn.DeleteQuota(q)
	}
	return nil
}

// Check refuses namespaces that refer to a quota that there is not. Errors: Invalid.
func Check(txn *store.Txn, list []*tenancy.Namespace) error {
	for _, n := range list {
		if n.Quota != "" && txn.Quota(n.Quota) == nil {
			return drover.Errorf(drover.Invalid, "namespace %q: Quota: nonexistent quota %q", n.Name, n.Quota)
		}
	}
	return nil
}

// BeginExecution applies the command. Errors: Gone, Exhausted.
func BeginExecution(txn *store.Txn, c *command.BeginExecution) (fresh bool, err error) {
	a := txn.Allocation(c.AllocID)
	switch {
	case a == nil || a.Terminal():
		return false, drover.Errorf(drover.Gone, "the runner of execution %s has ended", c.ID)
	case txn.ExecutionSlot(c.AllocID, c.ID) != nil:
		return false, nil
	}
	if err := txn.QuotaAccount(a.Namespace).Refusal("", quota.Amount{Executions: 1}); err != nil {
		return false, err
	}
	txn.PutExecutionSlot(&execution.Slot{Namespace: a.Namespace, AllocID: a.ID, ID: c.ID})
	return true, nil
}

// DropExecution counts an execution no more, if it did.
func DropExecution(txn *store.Txn, allocID, id string) {
	if x := txn.ExecutionSlot(allocID, id); x != nil {
		txn.DropExecutionSlot(x)
	}
}

// Spend counts what an execution used that ended, if its namespace has a quota. The time is that of the log: what a node says of its own
// clock begins no new day.
func Spend(txn *store.Txn, ev *command.ExecutionEvent, now int64) {
	r := ev.Execution.Receipt
	if r == nil || now == 0 {
		return
	}
	namespace := ev.Namespace
	if a := txn.Allocation(ev.Execution.AllocID); a != nil {
		namespace = a.Namespace
	}
	if n := txn.Namespace(namespace); n == nil || n.Quota == "" {
		return
	}
	next := execution.Spent{Namespace: namespace, Day: execution.Day(time.Unix(0, now))}
	if old := txn.Spent(namespace); old != nil && old.Day >= next.Day {
		next = *old
	}
	next.CPU += max(r.UserCPU+r.SystemCPU, 0)
	next.Bytes += max(r.StdoutBytes+r.StderrBytes, 0)
	txn.PutSpent(&next)
}

// NotFound says that there is no quota of the name.
func NotFound(name string) error { return drover.Errorf(drover.NotFound, "quota %q not found", name) }
