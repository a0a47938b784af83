package evalbroker

import (
	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/quota"
)

// Quotas tells what evaluations that wait for a quota need of it.
type Quotas interface {
	// Account is that of a namespace, the caller's own; nil if nothing limits that.
	Account(namespace string) *quota.Account
	// Ask is what an evaluation would use at least, in a node pool.
	Ask(e *drover.Evaluation) (pool string, ask quota.Amount)
}

// draw is what a woken evaluation may use of a quota until it is finished.
type draw struct {
	quota, pool string
	amount      quota.Amount
}

// standing is a namespace's account while evaluations are woken: as it is, and with what the woken ones may use.
type standing struct{ now, drawn *quota.Account }

// QuotaFreed records that a quota may have room again since the entry at index.
func (b *Blocked) QuotaFreed(name string, index uint64) { b.quotas[name] = index }

// quotaAlone reports whether the evaluation waits for nothing but its quota.
func quotaAlone(e *drover.Evaluation) bool {
	return e.QuotaLimitReached != "" && !e.EscapedComputedClass && len(e.ClassEligibility) == 0
}

// granted reports whether the quota that be waits for may help it now, and takes what that would use off it. Known are the standings that
// were looked at before, by quota of the account and by namespace.
func (b *Blocked) granted(be *blockedEval, quotas Quotas, known map[string]*standing) bool {
	at := b.quotas[be.eval.QuotaLimitReached]
	if be.eval.QuotaLimitReached == "" || at <= be.read || quotas == nil {
		return false
	}
	s := b.standingOf(be.eval.Namespace, quotas, known)
	if s == nil {
		return true
	}
	pool, ask := quotas.Ask(be.eval)
	if len(s.now.Exceeds(pool, ask)) > 0 {
		be.read = at
		return false
	}
	if len(s.drawn.Exceeds(pool, ask)) > 0 {
		return false // once those who were woken before it are finished, there may be room
	}
	s.drawn.Add(pool, ask)
	b.drawn[be.eval.ID] = draw{s.now.Quota, pool, ask}
	return true
}

// standingOf is that of a namespace; namespaces of one quota share it. It is nil where nothing is limited.
func (b *Blocked) standingOf(namespace string, quotas Quotas, known map[string]*standing) *standing {
	ofNamespace := "namespace/" + namespace
	if s, ok := known[ofNamespace]; ok {
		return s
	}
	account := quotas.Account(namespace)
	if account == nil {
		known[ofNamespace] = nil
		return nil
	}
	s := known["quota/"+account.Quota]
	if s == nil {
		drawn := *account
		s = &standing{account, &drawn}
		for _, d := range b.drawn {
			if d.quota == account.Quota {
				drawn.Add(d.pool, d.amount)
			}
		}
	}
	known[ofNamespace], known["quota/"+account.Quota] = s, s
	return s
}
