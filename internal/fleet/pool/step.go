package pool

import (
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/ledger"
	"github.com/drover-project/drover/internal/fleet/provider"
	"github.com/drover-project/drover/internal/invariant"
)

// become is the only writer of Instance.State.
func become(i *fleet.Instance, next fleet.InstanceState, now time.Time, why, reason string) {
	if i.State == next {
		return
	}
	// The change happens all the same: a wrong state is reported, but the fleet must go on.
	if i.State != 0 && !i.State.CanBecome(next) {
		invariant.Breach(invariant.Local, i.ID, "an instance that is %s can't become %s", i.State, next)
	}
	i.State, i.StateAt, i.Why, i.Reason = next, now, why, reason
	// Quiet means "drained and without work", which makes sense only while draining.
	if next != fleet.InstanceDraining {
		i.Quiet = false
	}
}

// found takes over what the cloud tells of a machine.
func found(i *fleet.Instance, m *provider.Machine, now time.Time) {
	i.Ambiguous = false
	i.ProviderID = m.ID
	if m.Address != "" {
		i.Address = m.Address
	}
	if !m.CreatedAt.IsZero() {
		i.CreatedAt = m.CreatedAt
	} else if i.CreatedAt.IsZero() {
		i.CreatedAt = now
	}
	if i.State == fleet.InstancePlanned || i.State == fleet.InstanceCreating {
		become(i, fleet.InstanceBooting, now, "created", "the cloud has it as "+m.ID)
	}
}

// adopted makes an instance from a machine's tags.
func adopted(m *provider.Machine, providerName string, policy *fleet.Policy, now time.Time) *fleet.Instance {
	i := &fleet.Instance{
		Durable: fleet.Durable{
			ID: m.Intent, ProviderID: m.ID, Provider: providerName, Address: m.Address, PlannedAt: m.CreatedAt, CreatedAt: m.CreatedAt,
			Pool: m.Tags[fleet.TagPool], Offering: m.Tags[fleet.TagOffering], Template: m.Tags[fleet.TagTemplate],
			Behavior: fleet.IdleBehavior(m.Tags[fleet.TagBehavior]),
		},
		Type: m.Type, Zone: m.Zone, Market: m.Market, Tags: m.Tags, Adopted: true, QuotaUnits: 1,
	}
	if i.ID == "" {
		i.ID = "cloud:" + m.ID
	}
	switch i.Behavior {
	case fleet.BehaviorHold, fleet.BehaviorDrain:
	default:
		i.Behavior = fleet.BehaviorRun
	}
	if policy == nil || m.Intent == "" {
		become(i, fleet.InstanceOrphaned, now, "adopted", "it has our owner tag, but no pool of ours")
		return i
	}
	become(i, fleet.InstanceBooting, now, "adopted", "found in the cloud by its tags")
	if policy.Expire > 0 && !m.CreatedAt.IsZero() {
		i.ExpiresAt = m.CreatedAt.Add(policy.Expire)
	}
	return i
}

// sold copies what the offering tells into the instance.
func sold(i *fleet.Instance, o *fleet.Offering) {
	i.Offering, i.Type, i.Zone, i.Market = o.Key, o.Type, o.Zone, o.Market
	i.Capacity, i.Price, i.QuotaGroup, i.QuotaUnits, i.Billing = o.Capacity, o.Price, o.QuotaGroup, max(o.QuotaUnits, 1), o.Billing
}

// Report is what is known of a machine's work.
type Report struct {
	Ready       bool // it takes work, or could if it were not drained
	Used        drover.Capacity
	Work        int
	Movable     bool
	Drained     bool      // its agent knows that it is drained: no new work can begin
	InterruptAt time.Time // when the cloud takes the machine back; zero = no notice came
	Broken      string    // why its run probe fails; "" = it does not

	Jobs       []ledger.Use      // whose work; nil = not told
	Total      drover.Capacity   // what the machine really has for work; zero = not told
	Attributes map[string]string // of the node, as constraints name them; nil = not told
}

// reported takes over what an agent, or control, tells of the work on a machine.
func reported(i *fleet.Instance, r Report, now time.Time) {
	switch {
	// Idle time starts at the first report without work, and begins again after every piece of work.
	case r.Work > 0:
		i.IdleAt = time.Time{}
	case i.IdleAt.IsZero() || i.Work > 0:
		i.IdleAt = now
	}
	i.Used, i.Work, i.Movable = r.Used, r.Work, r.Movable
	if r.Ready && (i.State == fleet.InstanceRegistered || i.State == fleet.InstanceBooting || i.State == fleet.InstanceCreating) {
		if i.ReadyAt.IsZero() {
			i.ReadyAt = now
		}
		become(i, fleet.InstanceActive, now, "ready", "its agent is ready")
	}
	if r.Broken != "" && i.State == fleet.InstanceActive && i.Behavior != fleet.BehaviorHold {
		become(i, fleet.InstanceDraining, now, "broken", "its run probe fails: "+r.Broken)
	}
	if r.Drained && i.State == fleet.InstanceActive && i.Behavior == fleet.BehaviorRun && i.Why != "demand" {
		// Drained before a restart of ours, or by somebody else: it takes no work, so it is returned.
		become(i, fleet.InstanceDraining, now, "node drained", "its node is drained")
	}
	i.Quiet = i.State == fleet.InstanceDraining && r.Drained && r.Work == 0
}
