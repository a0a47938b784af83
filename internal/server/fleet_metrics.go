package server

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/fleet/pool"
	"github.com/drover-project/drover/internal/fleet/provider"
	"github.com/drover-project/drover/internal/telemetry"
)

// fleetMeters are the fleet's counters and histograms; its gauges are read from the loops when somebody asks. Those who
// come from Arvados' dispatcher find theirs so (arvados_dispatchcloud_…, and ours as drover_fleet_…):
//
//	containers_running                                          work
//	containers_allocated_not_started                            work_starting
//	containers_not_allocated_over_quota                         waiting_without_machine
//	containers_longest_wait_time_seconds                        longest_wait_seconds
//	queue_entries {state}                                       queue {pool, state: placed, bought, waiting}
//	instances_total {category}                                  instances {provider, pool, state, type, zone}
//	instances_price                                             price_per_hour
//	vcpus_total, memory_bytes_total                             cpu_mhz, memory_bytes
//	boot_outcomes, instances_disappeared                        boot_outcomes, disappeared
//	instances_time_to_ssh_seconds                               time_to_registered
//	instances_time_to_ready_for_container_seconds               time_to_ready
//	instances_time_from_shutdown_request_to_disappearance       time_to_gone
//	containers_time_from_queue_to_crunch_run_seconds            time_to_placed
//	instances_run_probe_duration_seconds {outcome}              drover_machine_probe {probe, outcome}, at each machine's agent
//	probe_age_seconds_max, probe_age_seconds_median             heartbeat_age_seconds_max, heartbeat_age_seconds_median
//	last_503_time                                               last_rate_limited_time
//	max_concurrent_containers                                   create_room, quota_limit {group}
//	at_quota                                                    at_quota {group}
//	driver_operations {operation, error}                        call {operation, error: kind}, with durations
//	ec2_instances {subnet}, ec2_instance_starts_total {subnet}  instances {zone}, starts {zone, market, outcome}
//
// Beside them: decide, actions, offering_blocked, spent_today, budget_left_today, budget_left_hour.
type fleetMeters struct {
	calls       observe
	registered  observe
	ready       observe
	returned    observe
	waited      observe
	outcomes    count
	disappeared count
	actions     count
	starts      count
	decided     observe
	clock       clock.Clock

	mu      sync.Mutex
	heard   map[string]time.Time // when each remote node last called; guarded by mu
	limited map[string]time.Time // when each provider last said that we ask too often; guarded by mu
}

// heartbeat notes that a remote node called.
func (m *fleetMeters) heartbeat(nodeID string, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.heard[nodeID] = now
}

// observe adds a value to a histogram, count one to a counter.
type (
	observe func(seconds float64, labels ...string)
	count   func(labels ...string)
)

func newFleetMeters(m *telemetry.Metrics, c clock.Clock) *fleetMeters {
	span := func(name, help string, labels ...string) observe {
		h := m.Spans("drover.fleet."+name, help, labels...)
		return func(v float64, l ...string) { h.WithLabelValues(l...).Observe(v) }
	}
	counter := func(name, help string, labels ...string) count {
		c := m.Counter("drover.fleet."+name, help, labels...)
		return func(l ...string) { c.WithLabelValues(l...).Inc() }
	}
	return &fleetMeters{
		calls:       span("call", "Calls of clouds by kind and kind of error", "provider", "operation", "error"),
		registered:  span("time_to_registered", "From the decision to buy a machine to its agent's first call", "pool"),
		ready:       span("time_to_ready", "From the decision to buy a machine until it takes work", "pool"),
		returned:    span("time_to_gone", "From the decision to destroy a machine until it is confirmed gone", "pool"),
		waited:      span("time_to_placed", "How long work waited for a machine until it was placed", "node_pool"),
		outcomes:    counter("boot_outcomes", "How boots ended: success, failure, aborted, disappeared", "outcome"),
		disappeared: counter("disappeared", "Machines that went without having been destroyed", "pool"),
		decided:     decisions(m),
		actions:     counter("actions", "What the fleet and its operators did, by reason", "pool", "what", "why"),
		starts:      counter("starts", "Machines asked for, by what came of the call", "provider", "zone", "market", "outcome"),
		heard:       map[string]time.Time{},
		limited:     map[string]time.Time{},
		clock:       c,
	}
}

func decisions(m *telemetry.Metrics) observe {
	h := m.Durations("drover.fleet.decide", "Decisions of a loop over all of its pools", "provider")
	return func(v float64, l ...string) { h.WithLabelValues(l...).Observe(v) }
}

// came counts that a machine came into its state; old is what the log had of it, nil if nothing.
func (m *fleetMeters) came(i *fleet.Instance, old *fleet.InstanceRecord) {
	switch i.State {
	case fleet.InstanceRegistered:
		if !i.Adopted {
			m.registered(i.StateAt.Sub(i.PlannedAt).Seconds(), i.Pool)
		}
	case fleet.InstanceActive:
		if !i.Adopted && i.StateAt.Equal(i.ReadyAt) {
			m.ready(i.ReadyAt.Sub(i.PlannedAt).Seconds(), i.Pool)
			m.outcomes("success")
		}
	case fleet.InstanceGone:
		if old != nil && old.State == fleet.InstanceDestroying {
			m.returned(i.GoneAt.Sub(old.StateAt).Seconds(), i.Pool)
		}
		m.gone(i)
	default:
	}
}

func (m *fleetMeters) gone(i *fleet.Instance) {
	if i.Why == "disappeared" || i.Why == "terminated" {
		m.disappeared(i.Pool)
	}
	if !i.ReadyAt.IsZero() || i.Adopted || i.CreatedAt.IsZero() {
		return
	}
	switch i.Why {
	case "disappeared", "terminated":
		m.outcomes("disappeared")
	case "boot":
		m.outcomes("failure")
	default:
		m.outcomes("aborted")
	}
}

// watch returns the provider with its calls measured.
func (m *fleetMeters) watch(name string, p provider.Provider, c clock.Clock) provider.Provider {
	return &watched{Provider: p, name: name, meters: m, clock: c}
}

type watched struct {
	provider.Provider
	name   string
	meters *fleetMeters
	clock  clock.Clock
}

// Console implements provider.Consoler.
func (w *watched) Console(ctx context.Context, id string) ([]byte, error) {
	shows, ok := w.Provider.(provider.Consoler)
	if !ok {
		return nil, drover.Errorf(drover.NotImplemented, "the cloud shows no console")
	}
	return shows.Console(ctx, id)
}

func (w *watched) took(operation string, began time.Time, err error) {
	w.meters.called(w.name, operation, w.clock.Now().Sub(began), err)
}

// called counts a call of a cloud.
func (m *fleetMeters) called(name, operation string, took time.Duration, err error) {
	kind := "none"
	if err != nil {
		kind = string(provider.KindOf(err))
		if kind == string(provider.RateLimited) {
			m.mu.Lock()
			m.limited[name] = m.clock.Now()
			m.mu.Unlock()
		}
	}
	m.calls(took.Seconds(), name, operation, kind)
}

// Create implements provider.Provider.
func (w *watched) Create(ctx context.Context, req provider.Request) (made []provider.Machine, err error) {
	defer func(began time.Time) {
		w.took("create", began, err)
		outcome := "success"
		if err != nil {
			outcome = string(provider.KindOf(err))
		}
		w.meters.starts(w.name, req.Offering.Zone, req.Offering.Market, outcome)
	}(w.clock.Now())
	return w.Provider.Create(ctx, req)
}

// List implements provider.Provider.
func (w *watched) List(ctx context.Context, page string) (list []provider.Machine, next string, err error) {
	defer func(began time.Time) { w.took("list", began, err) }(w.clock.Now())
	return w.Provider.List(ctx, page)
}

// Destroy implements provider.Provider.
func (w *watched) Destroy(ctx context.Context, id string) (err error) {
	defer func(began time.Time) { w.took("destroy", began, err) }(w.clock.Now())
	return w.Provider.Destroy(ctx, id)
}

// SetTags implements provider.Provider.
func (w *watched) SetTags(ctx context.Context, id string, tags map[string]string) (err error) {
	defer func(began time.Time) { w.took("tag", began, err) }(w.clock.Now())
	return w.Provider.SetTags(ctx, id, tags)
}

// gauges tells what there is now. A loop that does not answer at once is left out.
func (f *fleetPlane) gauges(emit telemetry.Emit) {
	clouds := f.clouds.Load()
	if clouds == nil {
		return
	}
	f.nodeGauges(emit)
	for name, c := range *clouds {
		if c.pool == nil {
			continue
		}
		ctx, cancel := f.deps.Clock.WithTimeout(context.Background(), time.Second) //nolint:forbidigo // a reading has no context
		_ = c.pool.Do(ctx, func(now time.Time, core *pool.Core) error {
			f.gaugesOf(emit, name, now, core)
			return nil
		})
		cancel()
	}
}

type sums struct {
	n, price, cpu, memory, work float64
}

func (f *fleetPlane) gaugesOf(emit telemetry.Emit, name string, now time.Time, core *pool.Core) {
	f.cloudGauges(emit, name, core)
	names := []string{""}
	for _, p := range core.Policies() {
		names = append(names, p.Name)
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
	for _, poolName := range names {
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
}

// cloudGauges tells what is believed of a cloud's limits.
func (f *fleetPlane) cloudGauges(emit telemetry.Emit, name string, core *pool.Core) {
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
	emit("drover.fleet.create_room", float64(core.Beliefs().CreateRoom(f.deps.Clock.Now())), "provider", name)
	f.meters.mu.Lock()
	defer f.meters.mu.Unlock()
	if at, ever := f.meters.limited[name]; ever {
		emit("drover.fleet.last_rate_limited_time", float64(at.Unix()), "provider", name)
	}
}

// nodeGauges tells how long machines have been silent, and what is about to start on them.
func (f *fleetPlane) nodeGauges(emit telemetry.Emit) {
	now, s := f.deps.Clock.Now(), f.control.store.Snapshot()
	nodes, _ := f.view.Nodes()
	var ages []float64
	starting := 0
	f.meters.mu.Lock()
	seen := make(map[string]time.Time, len(nodes))
	for _, n := range nodes {
		if at, ok := f.meters.heard[n.ID]; ok {
			ages, seen[n.ID] = append(ages, now.Sub(at).Seconds()), at
		}
	}
	f.meters.heard = seen // others are not machines of ours, or not any more
	f.meters.mu.Unlock()
	for _, n := range nodes {
		for a := range s.UnfinishedByNode(n.ID) {
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
