package evalbroker

import (
	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/quota"
)

// Afford tells what an evaluation that waits for a quota would use at least: ask, in a node pool, of the account of its namespace. A nil
// account has no limit. Wake changes the account, which must be the evaluation's own.
type Afford func(e *drover.Evaluation) (account *quota.Account, pool string, ask quota.Amount)

// draw is what a woken evaluation may use of a quota until it is finished.
type draw struct {
	quota, pool string
	amount      quota.Amount
}

// QuotaFreed records that a quota may have room again since the entry at index.
func (b *Blocked) QuotaFreed(name string, index uint64) { b.quotas[name] = index }

// quotaAlone reports whether the evaluation waits for nothing but its quota.
func quotaAlone(e *drover.Evaluation) bool {
	return e.QuotaLimitReached != "" && !e.EscapedComputedClass && len(e.ClassEligibility) == 0
}

// granted reports whether the quota that be waits for may help it now, and takes what that would use off it.
func (b *Blocked) granted(be *blockedEval, afford Afford) bool {
	at := b.quotas[be.eval.QuotaLimitReached]
	if be.eval.QuotaLimitReached == "" || at <= be.read || afford == nil {
		return false
	}
	account, pool, ask := afford(be.eval)
	if account == nil {
		return true
	}
	if len(account.Exceeds(pool, ask)) > 0 {
		be.read = at
		return false
	}
	for _, d := range b.drawn {
		if d.quota == account.Quota {
			account.Add(d.pool, d.amount)
		}
	}
	if len(account.Exceeds(pool, ask)) > 0 {
		return false // once those who were woken before it are finished, there may be room
	}
	b.drawn[be.eval.ID] = draw{account.Quota, pool, ask}
	return true
}
