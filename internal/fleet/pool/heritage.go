package pool

import (
	"maps"
	"slices"
	"time"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/provider"
)

// A state that was restored from another cluster's archive knows of machines that may be at work for that cluster: nobody here can
// tell whether it is gone or goes on. Such a machine is watched. No pool counts on it, and nobody but a person destroys it, until
// its agent calls here. Then that cluster does not have it any more, it becomes ours, and its tag says so.

// whyForeign is why a machine is watched.
const whyForeign = "another cluster's"

// owns reports whether machines with the tag are surely ours.
func (c *Core) owns(tag string) bool {
	return tag != "" && (tag == c.cfg.Owner || slices.Contains(c.cfg.Also, tag))
}

// former reports whether the tag is that of a cluster whose archive was restored here.
func (c *Core) former(tag string) bool { return slices.Contains(c.cfg.Former, tag) }

// Foreign reports whether the machine is only watched.
func (c *Core) Foreign(instance string) bool {
	e := c.table[instance]
	return e != nil && e.Of != ""
}

// watch takes note of a machine of a former cluster, which the cloud lists.
func (c *Core) watch(now time.Time, m *provider.Machine) *entry {
	i := adopted(m, c.cfg.Provider, nil, now)
	if c.table[i.ID] != nil { // a double of one of ours, in name only
		i.ID = "cloud:" + m.ID
	}
	i.Of = m.Tags[fleet.TagOwner]
	i.Why, i.Reason = whyForeign, foreignReason(i.Of)
	e := c.add(i, nil)
	c.confirm(now, e, m)
	seen := *m
	e.seen = &seen
	c.note(now, e, "watched", i.Reason)
	return e
}

// recall takes note of a machine of a former cluster, which the restored log has. What was not known to be made is that cluster's
// business: if it was, the cloud lists it.
func (c *Core) recall(now time.Time, log *fleet.Durable) {
	i := &fleet.Instance{Durable: *log, QuotaUnits: 1, Adopted: true}
	e := c.add(i, nil)
	switch {
	case log.ProviderID == "":
		c.end(now, e, whyForeign, "whether it was made is not known here: "+foreignReason(log.Of))
		return
	case log.State != fleet.InstanceDestroying || log.Why != WhyKilled: // only a person's order goes on
		i.State = 0
		become(i, fleet.InstanceOrphaned, now, whyForeign, foreignReason(log.Of))
	}
	c.byProviderID[log.ProviderID] = e
}

func foreignReason(of string) string {
	return "it is of " + of + ", whose state was restored here: it is left alone until its agent calls here or fleet.owner names that cluster"
}

// inherit makes a machine of a former cluster ours, as its agent called here, and returns what it is now; nil while the cloud did not
// list it.
func (c *Core) inherit(now time.Time, e *entry) *entry {
	if e.seen == nil || e.State == fleet.InstanceDestroying {
		c.list.urgent = true
		return nil
	}
	was, m := e.Durable, *e.seen
	c.drop(e)
	was.Of = ""
	c.before[was.ID] = was
	m.Tags = maps.Clone(m.Tags)
	m.Tags[fleet.TagOwner] = c.cfg.Owner
	next := c.adopt(now, &m)
	c.note(now, next, "inherited", "its agent called here; it was of "+e.Of)
	c.retag(now, next)
	return next
}

// whose finds out from a list whose machine it is by now.
func (c *Core) whose(now time.Time, e *entry, m *provider.Machine) *entry {
	ours := c.owns(m.Tags[fleet.TagOwner])
	switch {
	case e.Of == "" && !ours:
		c.retag(now, e) // what was said when its agent called did not arrive
	case e.Of != "":
		seen := *m
		e.seen = &seen
		if !ours {
			break
		}
		if next := c.inherit(now, e); next != nil { // who led before claimed it, and could not write that down
			return next
		}
	}
	return e
}

// retag has the cloud say whose machine it is.
func (c *Core) retag(now time.Time, e *entry) {
	if c.beliefs.Tokens(now, provider.CallTag) <= 0 {
		return // the next list finds it
	}
	c.beliefs.Started(now, provider.CallTag, 1)
	c.effects = append(c.effects, Effect{
		Kind: EffectTag, Instance: e.ID, ProviderID: e.ProviderID, Tags: map[string]string{fleet.TagOwner: c.cfg.Owner},
	})
}

// drop forgets what is known of a machine that is there.
func (c *Core) drop(e *entry) {
	if e.counted {
		c.units[e.QuotaGroup] -= e.QuotaUnits
	}
	if e.sure {
		c.sure[e.QuotaGroup] -= e.QuotaUnits
		c.cost -= e.Price
	}
	delete(c.table, e.ID)
	delete(c.strays, e.ID)
	delete(c.byProviderID, e.ProviderID)
	delete(c.byNode, e.NodeID)
}
