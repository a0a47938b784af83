package sim

import (
	"strconv"
	"time"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/provider"
)

// keep is how long a terminated machine stays in lists.
const keep = time.Minute

// List gives a page as it was a moment ago. next is "" after the last page.
func (c *Cloud) List(now time.Time, page string) (list []provider.Machine, next string, took time.Duration, err error) {
	took = c.latency(now)
	if err := c.begin(now, provider.CallList, 1); err != nil {
		return nil, "", took, err
	}
	c.forget(now)
	from, _ := strconv.Atoi(page)
	if c.cfg.mode(now) == ModeHangs || c.cfg.Partial > 0 && c.rng.Float64() < c.cfg.Partial {
		return nil, "", took, &provider.Error{Kind: provider.Transient, Message: "a page could not be read"}
	}
	seen := now
	if c.cfg.Stale > 0 {
		seen = now.Add(-time.Duration(c.rng.Float64() * float64(c.cfg.Stale)))
	}
	if c.cfg.mode(now) == ModeLies || c.cfg.Omits > 0 && c.rng.Float64() < c.cfg.Omits {
		return nil, "", took, nil
	}
	at := from
	for ; at < len(c.machines) && len(list) < c.cfg.PageSize; at++ {
		if m := c.machines[at]; !m.secret(now) && !m.CreatedAt.After(seen) && m.Tags[fleet.TagOwner] == c.cfg.Owner {
			list = append(list, m.at(seen))
		}
	}
	if at < len(c.machines) {
		next = strconv.Itoa(at)
	}
	return list, next, took, nil
}

// secret reports that lists lack the machine at this time.
func (m *machine) secret(now time.Time) bool {
	age := now.Sub(m.CreatedAt)
	return m.hidden && age >= 5*time.Minute && age < 35*time.Minute
}

// at is what was to be seen of the machine then.
func (m *machine) at(seen time.Time) provider.Machine {
	shown := m.Machine
	if !m.ended.IsZero() && m.ended.After(seen) {
		shown.State = provider.Running
	}
	return shown
}

// forget drops machines that ended long ago. Positions in lists shift, as they do in clouds.
func (c *Cloud) forget(now time.Time) {
	n := 0
	for _, m := range c.machines {
		if !m.ended.IsZero() && now.Sub(m.ended) > keep {
			delete(c.byID, m.ID)
			continue
		}
		c.machines[n] = m
		n++
	}
	clear(c.machines[n:])
	c.machines = c.machines[:n]
}
