package pool

import (
	"maps"
	"slices"
	"time"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/provider"
	"github.com/drover-project/drover/internal/fleet/scaler"
	"github.com/drover-project/drover/internal/minheap"
)

// retryAt is a call to try again; one that is outdated is dropped when it comes up.
type retryAt struct {
	at time.Time
	id string
}

// newRetries returns a heap with the earliest retry on top. Entries are never removed: retryCalls drops those it no
// longer needs.
func newRetries() *minheap.Heap[retryAt] {
	return minheap.New(func(a, b retryAt) bool { return a.at.Before(b.at) }, nil)
}

// retryCalls repeats calls whose time has come, and returns the next time.
func (c *Core) retryCalls(now time.Time) time.Time {
	// asked collects the creates of this pass, so that machines of one batch share a call as they did at first.
	asked := map[provider.Batch]*provider.Request{}
	for c.retry.Len() > 0 && !now.Before(c.retry.Top().at) {
		e := c.table[c.retry.Pop().id]
		if e == nil || e.inFlight || now.Before(e.next) {
			continue
		}
		switch {
		case e.State == fleet.InstanceDestroying && e.ProviderID != "":
			c.again(now, e, provider.CallDestroy, asked)
		case e.unanswered && e.State.Starting() && e.pool != nil:
			c.again(now, e, provider.CallCreate, asked)
		// After six tries only lists can tell whether the machine exists.
		case e.Ambiguous && e.ProviderID == "" && c.cfg.Caps.Idempotent && e.pool != nil && e.tries <= 6:
			c.again(now, e, provider.CallCreate, asked)
		}
	}
	c.finishOrphans(now)
	if c.retry.Len() == 0 {
		return time.Time{}
	}
	return c.retry.Top().at
}

// again repeats a call. What is asked for again of one batch at a time is one call.
func (c *Core) again(now time.Time, e *entry, call provider.Call, asked map[provider.Batch]*provider.Request) {
	b, _, several := provider.BatchOf(e.ID)
	if req := asked[b]; call == provider.CallCreate && several && req != nil && req.Offering.Key == e.Offering &&
		req.Tags[fleet.TagTemplate] == e.Template {
		e.inFlight = true
		req.Intents = append(req.Intents, c.intent(e.pool, e.Instance))
		return
	}
	// The provider's rate is exhausted: the retry waits for the next token, and at least a second.
	if c.beliefs.Tokens(now, call) <= 0 {
		e.next = later(now.Add(time.Second), c.beliefs.TokensAt(now, call, 0))
		c.retry.Push(retryAt{e.next, e.ID})
		return
	}
	if call == provider.CallDestroy {
		c.callDestroy(now, e)
		return
	}
	o := e.pool.offering[e.Offering]
	// The pool no longer has this offering, so a create could not be repeated with equal parameters; the lists decide.
	if o == nil {
		return
	}
	e.inFlight = true
	c.beliefs.Started(now, provider.CallCreate, 1)
	req := request(e.pool.policy, e.Template, c.cfg.Owner, o, []provider.Intent{c.intent(e.pool, e.Instance)})
	c.effects = append(c.effects, Effect{Kind: EffectCreate, Request: req})
	if several {
		asked[b] = req
	}
}

// later returns the later of the two times.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// orphans returns the ids of machines of no pool in a fixed order, as simulations must be repeatable.
func (c *Core) orphans() []string {
	if len(c.strays) == 0 {
		return nil
	}
	return slices.Sorted(maps.Keys(c.strays))
}

// finishOrphans destroys machines of no pool after their grace, as scaler.Decide does for those of pools.
func (c *Core) finishOrphans(now time.Time) {
	if !c.settled(now, nil) {
		return
	}
	for _, id := range c.orphans() {
		e := c.strays[id]
		ours := e.State == fleet.InstanceOrphaned && e.Of == ""
		if ours && !e.Busy() && e.Behavior != fleet.BehaviorHold && now.Sub(e.StateAt) >= 10*time.Minute &&
			c.beliefs.Tokens(now, provider.CallDestroy) > 0 {
			c.destroy(now, e, scaler.WhyOrphan, "no pool of ours knows it")
		}
	}
}
