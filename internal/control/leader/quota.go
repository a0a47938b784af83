package leader

import (
	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/quota"
)

// QuotaFreed implements fsm.QuotaObserver.
func (l *Leader) QuotaFreed(index uint64, name string) { l.broker.QuotaFreed(name, index) }

// afford is the broker's evalbroker.Afford.
func (l *Leader) afford(e *drover.Evaluation) (account *quota.Account, pool string, ask quota.Amount) {
	s := l.deps.Store.Snapshot()
	j := s.Job(e.Namespace, e.JobID)
	if j == nil {
		return nil, "", ask // it is through at once
	}
	for i, g := range j.TaskGroups {
		if asked := quota.Asked(g, false); i == 0 {
			ask = asked
		} else {
			ask = ask.Min(asked)
		}
	}
	return s.QuotaAccount(e.Namespace), quota.Pool(j), ask
}
