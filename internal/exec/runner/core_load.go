package runner

import (
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/exec/environment"
)

// Line is one line of the journal: a claim or a release.
type Line struct {
	Claim   *AllocClaim `json:"claim,omitempty"`
	Release string      `json:"release,omitempty"` // an allocation
	Asked   bool        `json:"asked,omitempty"`   // of a release: see Releases
	Lease   uint64      `json:"lease,omitempty"`   // of whoever wrote it; see Config
}

// Load takes up what an earlier process handed out and did not record, from all lines of its journal. It is told first
// of all. It returns the allocations that ended meanwhile: the journal may forget them.
func (c *Core) Load(now time.Time, snap Snapshot, lines []Line) (settled []string) {
	for _, line := range lines {
		id := line.Release
		if line.Claim != nil {
			id = line.Claim.AllocID
		}
		alloc := snap.Allocation(id)
		switch {
		case id == "":
		case alloc == nil || alloc.Terminal():
			settled = append(settled, id)
		case line.Claim != nil:
			c.loadClaim(now, snap, alloc, *line.Claim)
		default:
			c.loadRelease(id, line.Asked)
		}
	}
	return settled
}

// loadClaim hands a runner out once more, as its line in the journal says. The claim is recorded in any case: the
// intake takes the same claim twice. A later line of the same runner has another idle timeout and replaces the
// claim.
func (c *Core) loadClaim(now time.Time, snap Snapshot, alloc *drover.Allocation, line AllocClaim) {
	c.claims = append(c.claims, line)
	c.effects.Record = true
	id, ok := environment.KeyOf(jobOf(alloc))
	if !ok || c.tombstones.has(alloc.ID) {
		return
	}
	c.readEnv(now, snap, jobOf(alloc))
	e := c.envs[id]
	if e == nil {
		return
	}
	switch r := c.runners[alloc.ID]; {
	case r == nil:
		c.addClaimed(now, e, &runner{alloc: alloc, env: id, of: madeOf(snap, e, alloc)}, claimed, &line.Claim)
		c.adopt(line.Claim.RunnerID)
	case r.claim == nil:
		e.warm.Remove(alloc.ID)
		c.addClaimed(now, e, r, claimed, &line.Claim)
		c.adopt(line.Claim.RunnerID)
	default: // the line of a later Extend
		r.claim = &line.Claim
		c.rearm(now, r)
	}
}

// loadRelease ends a runner that an earlier process released, and has the release recorded again.
func (c *Core) loadRelease(allocID string, asked bool) {
	reason := drover.Errorf(drover.Gone, "%w", ErrStopped)
	if r := c.runners[allocID]; r != nil && r.claim != nil {
		c.drop(r, reason)
		return
	}
	if r := c.runners[allocID]; r != nil {
		c.forget(c.envs[r.env], r)
	}
	c.tombstones.add(allocID, reason)
	c.releases = append(c.releases, release{allocID, reason.Error(), asked})
	c.effects.Record = true
}
