package pool

import (
	"container/heap"
	"maps"
	"slices"
	"time"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/provider"
	"github.com/drover-project/drover/internal/fleet/scaler"
)

// retries is a heap of calls to try again; entries that are outdated are dropped when they come up.
type retries []retryAt

type retryAt struct {
	at time.Time
	id string
}

func (r retries) Len() int           { return len(r) }
func (r retries) Less(i, j int) bool { return r[i].at.Before(r[j].at) }
func (r retries) Swap(i, j int)      { r[i], r[j] = r[j], r[i] }

// Push is for container/heap.
func (r *retries) Push(x any) { *r = append(*r, x.(retryAt)) }

// Pop is for container/heap.
func (r *retries) Pop() any {
	old := *r
	x := old[len(old)-1]
	*r = old[:len(old)-1]
	return x
}

func (r *retries) push(at time.Time, id string) { heap.Push(r, retryAt{at, id}) }

// due repeats calls whose time has come, and returns the next time.
func (c *Core) due(now time.Time) time.Time {
	asked := map[provider.Batch]*provider.Request{}
	for len(c.retry) > 0 && !now.Before(c.retry[0].at) {
		e := c.table[heap.Pop(&c.retry).(retryAt).id]
		if e == nil || e.inFlight || now.Before(e.next) {
			continue
		}
		switch {
		case e.State == fleet.InstanceDestroying && e.ProviderID != "":
			c.again(now, e, provider.CallDestroy, asked)
		case e.unanswered && e.State.Starting() && e.pool != nil:
			c.again(now, e, provider.CallCreate, asked)
		case e.Ambiguous && e.ProviderID == "" && c.cfg.Caps.Idempotent && e.pool != nil && e.tries <= 6:
			c.again(now, e, provider.CallCreate, asked)
		}
	}
	c.finishOrphans(now)
	if len(c.retry) == 0 {
		return time.Time{}
	}
	return c.retry[0].at
}

// again repeats a call. What is asked for again of one batch at a time is one call.
func (c *Core) again(now time.Time, e *entry, call provider.Call, asked map[provider.Batch]*provider.Request) {
	b, _, several := provider.BatchOf(e.ID)
	if req := asked[b]; call == provider.CallCreate && several && req != nil && req.Offering.Key == e.Offering && req.Tags[fleet.TagTemplate] == e.Template {
		e.inFlight = true
		req.Intents = append(req.Intents, c.intent(e.pool, e.Instance))
		return
	}
	if c.beliefs.Tokens(now, call) <= 0 {
		e.next = later(now.Add(time.Second), c.beliefs.TokensAt(now, call, 0))
		c.retry.push(e.next, e.ID)
		return
	}
	if call == provider.CallDestroy {
		c.callDestroy(now, e)
		return
	}
	o := e.pool.offering[e.Offering]
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

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

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
		if e.State == fleet.InstanceOrphaned && !e.Busy() && e.Behavior != fleet.BehaviorHold && now.Sub(e.StateAt) >= 10*time.Minute && c.beliefs.Tokens(now, provider.CallDestroy) > 0 {
			c.destroy(now, e, scaler.WhyOrphan, "no pool of ours knows it")
		}
	}
}
