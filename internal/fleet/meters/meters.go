package meters

import (
	"sync"
	"time"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/telemetry"
)

// Meters are the fleet's counters and histograms; its gauges are read from the loops when somebody asks. Those who
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
type Meters struct {
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

// Heartbeat notes that a remote node called.
func (m *Meters) Heartbeat(nodeID string) {
	now := m.clock.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.heard[nodeID] = now
}

// HeardSince reports whether the node called since then.
func (m *Meters) HeardSince(nodeID string, then time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	at, ever := m.heard[nodeID]
	return ever && !at.Before(then)
}

// observe adds a value to a histogram, count one to a counter.
type (
	observe func(seconds float64, labels ...string)
	count   func(labels ...string)
)

// New returns the meters, which m shows.
func New(m *telemetry.Metrics, c clock.Clock) *Meters {
	span := func(name, help string, labels ...string) observe {
		h := m.Spans("drover.fleet."+name, help, labels...)
		return func(v float64, l ...string) { h.WithLabelValues(l...).Observe(v) }
	}
	counter := func(name, help string, labels ...string) count {
		c := m.Counter("drover.fleet."+name, help, labels...)
		return func(l ...string) { c.WithLabelValues(l...).Inc() }
	}
	return &Meters{
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

// Placed counts work that waited for a machine and was placed.
func (m *Meters) Placed(seconds float64, nodePool ...string) { m.waited(seconds, nodePool...) }

// Decided counts a decision of a provider's loop.
func (m *Meters) Decided(provider string, took time.Duration) { m.decided(took.Seconds(), provider) }

// Acted counts an entry of the audit log.
func (m *Meters) Acted(e *fleet.Audit) { m.actions(e.Pool, e.What, e.Why) }

// StateChanged counts that a machine came into its state; old is what the log had of it, nil if nothing.
func (m *Meters) StateChanged(i *fleet.Instance, old *fleet.InstanceRecord) {
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

func (m *Meters) gone(i *fleet.Instance) {
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
