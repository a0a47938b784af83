package meters

import (
	"iter"
	"slices"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/pool"
	"github.com/drover-project/drover/internal/telemetry"
)

type sums struct {
	n, price, cpu, memory, work float64
}

// Gauges emits what a provider's loop knows now.
func (m *Meters) Gauges(emit telemetry.Emit, name string, now time.Time, core *pool.Core) {
	m.cloudGauges(emit, name, core)
	names := []string{""}
	for _, p := range core.Policies() {
		names = append(names, p.Name)
		poolGauges(emit, now, p, core)
	}
	for _, poolName := range names {
		instanceGauges(emit, name, poolName, core)
	}
}

func poolGauges(emit telemetry.Emit, now time.Time, p *fleet.Policy, core *pool.Core) {
	placed, bought, waiting, longest := 0, 0, 0, 0.0
	for _, w := range core.Waiting(p.Name) {
		placed, bought, waiting = placed+w.Placed, bought+w.Bought, waiting+max(w.Count-w.Placed-w.Bought, 0)
	}
	emit("drover.fleet.queue", float64(placed), "pool", p.Name, "state", "placed")
	emit("drover.fleet.queue", float64(bought), "pool", p.Name, "state", "bought")
	emit("drover.fleet.queue", float64(waiting), "pool", p.Name, "state", "waiting")
	for _, d := range core.Demand(p.Name) {
		longest = max(longest, now.Sub(d.Since).Seconds())
	}
	emit("drover.fleet.waiting_without_machine", float64(waiting), "pool", p.Name)
	emit("drover.fleet.longest_wait_seconds", longest, "pool", p.Name)
	spent := core.SpentToday(now, p.Name)
	emit("drover.fleet.spent_today", spent, "pool", p.Name)
	if p.Budget.PerHour > 0 {
		emit("drover.fleet.budget_left_hour", p.Budget.PerHour-core.PerHour(p.Name), "pool", p.Name)
	}
	if p.Budget.PerDay > 0 {
		emit("drover.fleet.budget_left_today", p.Budget.PerDay-spent, "pool", p.Name)
	}
	offers := p.Offerings()
	for k := range offers {
		if why, _ := core.Beliefs().Blocked(now, &offers[k], core.Template(p.Name)); why != "" {
			emit("drover.fleet.offering_blocked", 1, "pool", p.Name, "offering", offers[k].Key)
		}
	}
}

func instanceGauges(emit telemetry.Emit, name, poolName string, core *pool.Core) {
	by := map[[3]string]*sums{}
	for _, i := range core.Instances(poolName) {
		key := [3]string{category(&i), i.Type, i.Zone}
		s := by[key]
		if s == nil {
			s = &sums{}
			by[key] = s
		}
		s.n++
		s.price += i.Price
		s.work += float64(i.Work)
		s.cpu += float64(i.Capacity.CPU)
		s.memory += float64(i.Capacity.MemoryMB) * (1 << 20)
	}
	for key, s := range by {
		labels := []string{"provider", name, "pool", poolName, "state", key[0], "type", key[1], "zone", key[2]}
		emit("drover.fleet.instances", s.n, labels...)
		emit("drover.fleet.price_per_hour", s.price, labels...)
		emit("drover.fleet.cpu_mhz", s.cpu, labels...)
		emit("drover.fleet.memory_bytes", s.memory, labels...)
		emit("drover.fleet.work", s.work, labels...)
	}
}

// cloudGauges emits what is believed of a cloud's limits.
func (m *Meters) cloudGauges(emit telemetry.Emit, name string, core *pool.Core) {
	groups := map[string]bool{}
	for _, p := range core.Policies() {
		for _, o := range p.Wanted() {
			groups[o.QuotaGroup] = true
		}
	}
	for group := range groups {
		reached := 0.0
		if q, met := core.Beliefs().Quota(group); met {
			emit("drover.fleet.quota_limit", float64(q.Limit), "provider", name, "group", group)
			if core.InUse(group) >= q.Limit {
				reached = 1
			}
		}
		emit("drover.fleet.at_quota", reached, "provider", name, "group", group)
	}
	emit("drover.fleet.create_room", float64(core.Beliefs().CreateRoom(m.clock.Now())), "provider", name)
	m.mu.Lock()
	defer m.mu.Unlock()
	if at, ever := m.limited[name]; ever {
		emit("drover.fleet.last_rate_limited_time", float64(at.Unix()), "provider", name)
	}
}

// NodeGauges emits how long machines have been silent, and how much is about to start on them. unfinished yields the
// allocations of a node that have not ended.
func (m *Meters) NodeGauges(emit telemetry.Emit, nodes []pool.Node, unfinished func(nodeID string) iter.Seq[*drover.Allocation]) {
	now := m.clock.Now()
	var ages []float64
	starting := 0
	m.mu.Lock()
	seen := make(map[string]time.Time, len(nodes))
	for _, n := range nodes {
		if at, ok := m.heard[n.ID]; ok {
			ages, seen[n.ID] = append(ages, now.Sub(at).Seconds()), at
		}
	}
	m.heard = seen // others are not machines of ours, or not any more
	m.mu.Unlock()
	for _, n := range nodes {
		for a := range unfinished(n.ID) {
			if a.ClientStatus == drover.AllocClientPending {
				starting++
			}
		}
	}
	emit("drover.fleet.work_starting", float64(starting))
	if len(ages) == 0 {
		return
	}
	slices.Sort(ages)
	emit("drover.fleet.heartbeat_age_seconds_max", ages[len(ages)-1])
	emit("drover.fleet.heartbeat_age_seconds_median", ages[len(ages)/2])
}

// category is an instance's state as people count it: active ones are busy, idle or held.
func category(i *fleet.Instance) string {
	switch {
	case i.Behavior == fleet.BehaviorHold:
		return "hold"
	case i.State != fleet.InstanceActive:
		return i.State.String()
	case i.Busy():
		return "busy"
	}
	return "idle"
}
