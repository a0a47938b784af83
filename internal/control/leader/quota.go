package leader

import (
	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/quota"
)

// QuotaFreed implements fsm.QuotaObserver.
func (l *Leader) QuotaFreed(index uint64, name string) { l.broker.QuotaFreed(name, index) }

// quotas is the broker's evalbroker.Quotas.
type quotas struct{ store *store.Store }

// Account implements evalbroker.Quotas.
func (q quotas) Account(namespace string) *quota.Account {
	return q.store.Snapshot().QuotaAccount(namespace)
}

// Ask implements evalbroker.Quotas. A job that is gone asks for nothing: its evaluation is through at once.
func (q quotas) Ask(e *drover.Evaluation) (pool string, ask quota.Amount) {
	j := q.store.Snapshot().Job(e.Namespace, e.JobID)
	if j == nil {
		return "", ask
	}
	for i, g := range j.TaskGroups {
		if asked := quota.Asked(g, false); i == 0 {
			ask = asked
		} else {
			ask = ask.Min(asked)
		}
	}
	return quota.Pool(j), ask
}
