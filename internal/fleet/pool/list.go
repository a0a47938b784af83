package pool

import (
	"cmp"
	"slices"
	"time"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/provider"
)

// listing is when the cloud's machines were and will be listed.
type listing struct {
	complete int // lists that were seen whole
	inFlight bool
	began    time.Time // of the last one
	urgent   bool
	seq      int // of the list that is looked at
}

// How often the cloud is listed: with something open, and without.
const (
	listOpen  = 10 * time.Second
	listQuiet = time.Minute
	listEach  = 4 * time.Millisecond // longer for each machine, up to listQuiet: a list of ten thousand is ten pages or more
)

// startList begins a list if one is due.
func (c *Core) startList(now time.Time) time.Time {
	// Only one list is read at a time: the sequence number and the time of its begin belong to the list under way.
	l := &c.list
	if l.inFlight {
		return time.Time{}
	}
	every := listQuiet
	if l.urgent || l.complete == 0 {
		every = min(max(listOpen, time.Duration(len(c.table))*listEach), listQuiet)
	}
	at := l.began.Add(every)
	if t := c.beliefs.TokensAt(now, provider.CallList, 0); t.After(at) {
		at = t
	}
	if now.Before(at) {
		return at
	}
	l.inFlight, l.began, l.urgent = true, now, false
	c.beliefs.Started(now, provider.CallList, 1)
	c.effects = append(c.effects, Effect{Kind: EffectList})
	return time.Time{}
}

// Listed tells what the cloud has; complete is false if pages are missing. A machine is missed only by lists that
// began when it surely had to be in them.
func (c *Core) Listed(now time.Time, machines []provider.Machine, complete bool, err error) {
	began := c.list.began
	c.list.inFlight = false
	c.beliefs.Done(now, provider.CallList, err)
	c.troubled(now, "listing its machines", err)
	// Every machine that the list has gets its sequence number, so those it lacks are found without a set of ids.
	c.list.seq++
	for k := range machines {
		e := c.listed(now, &machines[k])
		if e != nil {
			e.listed, e.unseen = c.list.seq, 0
		}
		c.checkOwned(&machines[k], e)
	}
	if err != nil || !complete {
		c.list.urgent = true
		return
	}
	c.list.complete++
	if c.list.complete == 1 {
		c.askAgain(now)
	}
	unlisted := c.unlisted()
	if c.contradictsAgents(began, unlisted) {
		c.list.urgent = true
		return
	}
	patience := c.patience(unlisted)
	for _, e := range unlisted {
		c.missing(now, began, e, patience)
	}
	for id, at := range c.gone {
		if now.Sub(at) > time.Hour {
			delete(c.gone, id)
		}
	}
}

// askAgain repeats, with the same keys, creates that were not answered before a restart, whether their machines are in the
// first list or not. Where that is safe it is the quickest way to know, and completes what was cut off.
func (c *Core) askAgain(now time.Time) {
	if !c.cfg.Caps.Idempotent {
		return
	}
	for _, p := range c.pools {
		for _, i := range p.living() {
			if e := c.table[i.ID]; e.unanswered && i.NodeID == "" {
				e.next = now
				c.retry.Push(retryAt{now, i.ID})
			}
		}
	}
}

// listed takes over what the cloud tells of a machine, and returns what is known of it now; nil if it is none of ours, or
// gone.
func (c *Core) listed(now time.Time, m *provider.Machine) *entry {
	former := !c.owns(m.Tags[fleet.TagOwner])
	if former && !c.former(m.Tags[fleet.TagOwner]) {
		return nil
	}
	e := c.byProviderID[m.ID]
	if e == nil && m.Intent != "" {
		if e = c.table[m.Intent]; e != nil && e.ProviderID != "" && e.ProviderID != m.ID {
			e = nil // a second machine with the same intent: a double of a cloud that is not idempotent
		}
	}
	over := m.State == provider.Terminated || m.State == provider.Terminating
	switch {
	case e == nil && over:
	case e == nil && former:
		return c.watch(now, m)
	case e == nil:
		return c.adopt(now, m)
	case m.State == provider.Terminated:
		if e.State == fleet.InstanceDestroying {
			c.end(now, e, e.Why, "destroyed: "+e.Reason)
		} else if !c.agentConnected(e) {
			c.end(now, e, "terminated", "the cloud says that it is terminated")
		}
		if e.State == fleet.InstanceGone || c.byProviderID[m.ID] != e {
			return nil
		}
	default:
		return c.there(now, e, m)
	}
	return e
}

// there takes over what the cloud tells of a machine that is known and not gone.
func (c *Core) there(now time.Time, e *entry, m *provider.Machine) *entry {
	c.confirm(now, e, m)
	if e = c.whose(now, e, m); e.Of == "" {
		c.mark(now, e, m)
	}
	e.inFlight = e.inFlight && e.State == fleet.InstanceDestroying
	if e.State == fleet.InstanceDestroying && m.State != provider.Terminating && !e.inFlight && !now.Before(e.next) {
		c.callDestroy(now, e)
	}
	return e
}

// mark gives a machine of a batch the tags of its own, which it could not be made with.
func (c *Core) mark(now time.Time, e *entry, m *provider.Machine) {
	if m.Tags[fleet.TagIntent] != "" || m.Intent == "" || m.State == provider.Terminating || c.beliefs.Tokens(now, provider.CallTag) <= 0 {
		return
	}
	c.beliefs.Started(now, provider.CallTag, 1)
	c.effects = append(c.effects, Effect{
		Kind: EffectTag, Instance: e.ID, ProviderID: m.ID,
		Tags: map[string]string{fleet.TagIntent: m.Intent},
	})
}

// adopt takes a machine over that has our owner tag and that nobody here knows.
func (c *Core) adopt(now time.Time, m *provider.Machine) *entry {
	p := c.pool(m.Tags[fleet.TagPool])
	_, again := c.gone[m.Intent]
	// A second machine with a known intent gets an id of its own, from the cloud's, and becomes an orphan.
	double := c.table[m.Intent] != nil
	var i *fleet.Instance
	switch {
	case p == nil || m.Intent == "" || again || double:
		i = adopted(m, c.cfg.Provider, nil, now)
		if double {
			i.ID = "cloud:" + m.ID
		}
	default:
		i = adopted(m, c.cfg.Provider, p.policy, now)
		i.Template = p.current(i.Template)
		if o := p.offering[i.Offering]; o != nil {
			sold(i, o)
		} else if i.Behavior != fleet.BehaviorHold {
			i.Behavior = fleet.BehaviorDrain // it is not sold here any more
		}
	}
	// An orphan's price is needed too, as its cost is charged to the pool that its tag names.
	if p != nil && i.Price == 0 {
		if o := p.offering[i.Offering]; o != nil {
			sold(i, o)
		}
	}
	delete(c.gone, m.Intent)
	log, known := c.before[i.ID]
	if known {
		restored(i, &log)
		delete(c.before, i.ID)
	}
	e := c.add(i, p)
	c.confirm(now, e, m)
	c.note(now, e, "adopted", i.Reason)
	if known && log.State == fleet.InstanceDestroying { // who led before may do it yet
		become(i, fleet.InstanceDestroying, now, log.Why, log.Reason)
		c.callDestroy(now, e)
	}
	return e
}

// missing notes that a complete list lacks the machine; patience of them in a row, and it is gone.
func (c *Core) missing(now, began time.Time, e *entry, patience int) {
	// The cloud was not asked for it yet, or the answer is still open: its absence means nothing.
	if e.State == fleet.InstancePlanned || e.inFlight && e.ProviderID == "" {
		return
	}
	since := e.seenAt
	if e.State == fleet.InstanceCreating && e.StateAt.After(since) {
		since = e.StateAt
	}
	if began.Before(since.Add(c.cfg.Caps.Visible)) || c.agentConnected(e) {
		c.list.urgent = true
		return
	}
	e.misses++
	if e.misses < patience {
		c.list.urgent = true
		return
	}
	why, reason := "disappeared", "two whole lists of the cloud lack it"
	switch {
	case e.State == fleet.InstanceDestroying:
		why, reason = e.Why, "destroyed: "+e.Reason
	case e.ProviderID == "":
		why, reason = "not created", "two whole lists of the cloud lack it, after a create that told nothing"
	case e.ReadyAt.IsZero() && e.pool != nil && !e.Adopted:
		if o := e.pool.offering[e.Offering]; o != nil {
			c.beliefs.BootFailed(now, o, e.Template)
		}
	}
	c.end(now, e, why, reason)
}

// contradictsAgents reports that the list lacks a machine that is surely there, as its agent is connected: then what it lacks of
// others means nothing either.
func (c *Core) contradictsAgents(began time.Time, unlisted []*entry) bool {
	// Only a list that shows more than half of the machines says something about a single one that it lacks.
	most := 2*len(unlisted) < len(c.table)
	contradicted := false
	for _, e := range unlisted {
		if e.pool != nil && e.State == fleet.InstanceActive && e.LostAt.IsZero() &&
			began.After(later(e.seenAt, e.ReadyAt).Add(c.cfg.Caps.Visible)) {
			if most {
				e.unseen++
			}
			contradicted = contradicted || e.unseen < maxUnseen
		}
	}
	return contradicted
}

// maxUnseen bounds how often a living machine may be missing in lists that show most others, before it counts as one that the
// cloud never shows. Such a machine must not keep us from noticing others that are gone.
const maxUnseen = 4

// unlisted returns what is known and not in the list that is looked at, in a fixed order.
func (c *Core) unlisted() (list []*entry) {
	for _, e := range c.table {
		if e.ProviderID == "" || e.listed != c.list.seq {
			list = append(list, e)
		}
	}
	slices.SortFunc(list, func(a, b *entry) int {
		return cmp.Or(a.PlannedAt.Compare(b.PlannedAt), cmp.Compare(a.ID, b.ID))
	})
	return list
}

// patience is how many lists in a row have to lack a machine: two, but more if they lack most of what we have at once.
func (c *Core) patience(unlisted []*entry) int {
	missed := 0
	for _, e := range unlisted {
		if e.ProviderID != "" && e.State != fleet.InstanceDestroying {
			missed++
		}
	}
	// Too few to suspect the list: two machines can well end at the same time.
	if missed < 3 {
		return 2
	}
	known := 0
	for id, e := range c.byProviderID { // counting only
		if e.ProviderID == id && e.State != fleet.InstanceDestroying {
			known++
		}
	}
	// More than half of the machines vanish at once: this is rather an outage of the list than of the machines.
	if 2*missed > known {
		return 12
	}
	return 2
}

// agentConnected reports that the machine's agent is connected, whatever the cloud says: control tells when it is not. One that
// we had destroyed needs no second opinion.
func (c *Core) agentConnected(e *entry) bool {
	if e.Of != "" {
		return false
	}
	connected := e.LostAt.IsZero() || e.Busy() // control has not given its work up
	return e.NodeID != "" && connected && e.State != fleet.InstanceDestroying
}
