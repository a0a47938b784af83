package runner

import (
	"slices"

	"github.com/drover-project/drover"
)

// The bounds of the claims in one entry.
const (
	maxBatch      = 1_000
	maxBatchBytes = 4 << 20 // of their variables and labels, about
)

// largePools is the size from which a pool may lack runners for a moment: what is claimed of smaller ones is replaced
// at once.
const largePools = 10

// Batch is what is recorded together, in any order.
type Batch struct {
	Claims   []AllocClaim
	Demands  []Demand
	Releases []Releases
	Dropped  []string // allocations whose claims need no record, as they were released before: the journal may forget them
}

// Releases are allocations that are stopped for one reason.
type Releases struct {
	AllocIDs []string
	Reason   string
	Asked    bool // by their claimers, who were answered: whichever server keeps the runners now, they end
}

// Empty reports whether there is nothing to record.
func (b *Batch) Empty() bool { return len(b.Claims)+len(b.Demands)+len(b.Releases) == 0 }

// Unrecorded is how many claims and releases are to be recorded.
func (c *Core) Unrecorded() (claims, releases int) { return len(c.claims), len(c.releases) }

// Activity counts what claimers do, and reports whether what is to be recorded must not wait.
func (c *Core) Activity() (count uint64, urgent bool) {
	if c.awaited {
		return c.uses, true
	}
	drawn := false
	for _, e := range c.envs {
		lacks := e.warm.Len() < e.PoolSize
		if e.waiters.Len() > 0 || e.wanted() != e.demand || lacks && e.PoolSize < largePools {
			return c.uses, true
		}
		drawn = drawn || lacks
	}
	return c.uses, !drawn || 4*len(c.claims) > maxBatch
}

// Batch takes what is to be recorded next. Tell ClaimsRecorded and ReleasesRecorded, or NotRecorded, what became of it.
func (c *Core) Batch() (b Batch) {
	n := fitting(c.claims)
	for _, line := range c.claims[:n] {
		if c.releaseWritten(line.AllocID) {
			b.Dropped = append(b.Dropped, line.AllocID)
		} else {
			b.Claims = append(b.Claims, line)
		}
	}
	c.claims = slices.Delete(c.claims, 0, n)
	if len(c.claims) == 0 { // with the last of them: a claim must not be recorded after the demand that it ends
		b.Demands = c.demands(b.Claims)
	}
	n = min(len(c.releases), maxBatch)
	b.Releases = byReason(c.releases[:n])
	c.releases = slices.Delete(c.releases, 0, n)
	return b
}

// releaseWritten reports whether the runner ended and the journal says so, where it was released: only then may it forget
// the claim. Else the next process would take the runner as warm.
func (c *Core) releaseWritten(allocID string) bool {
	_, unwritten := c.unwritten[allocID]
	return c.tombstones.has(allocID) && !unwritten
}

// ClaimsRecorded tells what became of the claims of a batch: one error a claim, nil where it was recorded. Runners whose
// claim can never be recorded end.
func (c *Core) ClaimsRecorded(claims []AllocClaim, results []error) {
	for i, line := range claims {
		if i >= len(results) || results[i] == nil {
			continue
		}
		if r := c.runners[line.AllocID]; r != nil {
			c.drop(r, drover.Errorf(drover.Gone, "the runner ended while it was handed out: %w", results[i]))
		}
	}
	c.settled()
}

// ReleasesRecorded tells that the state has the allocations as stopped.
func (c *Core) ReleasesRecorded(allocIDs []string) {
	for _, id := range allocIDs {
		delete(c.unwritten, id)
	}
}

// NotRecorded has what could not be recorded tried again.
func (c *Core) NotRecorded(b Batch) {
	c.claims = append(b.Claims, c.claims...)
	var again []release
	for _, of := range b.Releases {
		for _, id := range of.AllocIDs {
			again = append(again, release{id, of.Reason, of.Asked})
		}
	}
	c.releases = append(again, c.releases...)
	c.forgetDemands(b.Demands)
	c.effects.Record = true
}

// fitting is how many of the claims go into one entry, at least one.
func fitting(claims []AllocClaim) int {
	bytes := 0
	for i := range claims {
		for _, m := range []map[string]string{claims[i].Claim.Env, claims[i].Claim.Labels} {
			for k, v := range m {
				bytes += len(k) + len(v)
			}
		}
		if i == maxBatch || i > 0 && bytes > maxBatchBytes {
			return i
		}
	}
	return len(claims)
}

// byReason groups releases, in the order of their first ones.
func byReason(releases []release) (all []Releases) {
	for _, r := range releases {
		i := slices.IndexFunc(all, func(of Releases) bool { return of.Reason == r.reason && of.Asked == r.asked })
		if i < 0 {
			i = len(all)
			all = append(all, Releases{Reason: r.reason, Asked: r.asked})
		}
		all[i].AllocIDs = append(all[i].AllocIDs, r.allocID)
	}
	return all
}
