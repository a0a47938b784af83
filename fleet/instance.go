package fleet

import (
	"fmt"
	"time"

	"github.com/drover-project/drover"
)

// InstanceState is where a machine of the fleet stands in its life. Values are spaced so that states can be added.
//
//	planned → creating → booting → registered → active → draining → destroying → gone⟂
//	any → orphaned (adopted by its tags, or destroyed after a grace)
type InstanceState uint16

// The states of an instance.
const (
	InstancePlanned    InstanceState = 64 * (iota + 1) // its intent is being recorded
	InstanceCreating                                   // the cloud was asked, or may have been
	InstanceBooting                                    // the cloud has it
	InstanceRegistered                                 // its agent called home; probes run
	InstanceActive                                     // takes work
	InstanceDraining                                   // takes no new work
	InstanceDestroying                                 // the cloud is asked to destroy it
	InstanceOrphaned                                   // ours by its tags, but no pool or intent is known for it
	InstanceGone                                       // confirmed absent
)

var instanceStateNames = map[InstanceState]string{
	InstancePlanned: "planned", InstanceCreating: "creating", InstanceBooting: "booting",
	InstanceRegistered: "registered", InstanceActive: "active", InstanceDraining: "draining",
	InstanceDestroying: "destroying", InstanceOrphaned: "orphaned", InstanceGone: "gone",
}

// String returns the state's word in the API.
func (s InstanceState) String() string {
	if n, ok := instanceStateNames[s]; ok {
		return n
	}
	return fmt.Sprintf("state(%d)", uint16(s))
}

// MarshalText writes the state's word.
func (s InstanceState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the state's word. Errors: Invalid.
func (s *InstanceState) UnmarshalText(b []byte) error {
	for k, n := range instanceStateNames {
		if n == string(b) {
			*s = k
			return nil
		}
	}
	return drover.Errorf(drover.Invalid, "unknown instance state %q", b)
}

// Terminal reports whether nothing follows.
func (s InstanceState) Terminal() bool { return s == InstanceGone }

// Starting reports whether the machine was asked for and takes no work yet.
func (s InstanceState) Starting() bool { return s >= InstancePlanned && s <= InstanceRegistered }

// CanBecome reports whether the transition exists.
func (s InstanceState) CanBecome(next InstanceState) bool {
	switch {
	case s == InstanceGone:
		return false
	case next == InstanceGone || next == InstanceOrphaned || next == InstanceDestroying:
		return s != next
	case s == InstanceOrphaned:
		return next == InstanceBooting || next == InstanceRegistered || next == InstanceActive || next == InstanceDraining
	case s == InstanceDraining:
		return next == InstanceActive // the drain was called off
	case s == InstanceDestroying:
		return false
	}
	return next > s
}

// IdleBehavior is what an operator wants of a machine.
type IdleBehavior string

// The idle behaviours.
const (
	BehaviorRun   IdleBehavior = "run"   // takes work, is returned when idle for long
	BehaviorHold  IdleBehavior = "hold"  // takes no new work, is never destroyed by the fleet
	BehaviorDrain IdleBehavior = "drain" // takes no new work, is returned as soon as it is idle
)

// Tags that the fleet writes onto machines; with them and the agents' reports it is rebuilt after a restart.
const (
	TagOwner    = "drover-owner"    // which Drover; others' machines are never touched
	TagIntent   = "drover-intent"   // Instance.ID
	TagBatch    = "drover-batch"    // provider.Batch, of machines that one call made
	TagPool     = "drover-pool"     // Policy.Name
	TagOffering = "drover-offering" // Offering.Key
	TagBehavior = "drover-behavior" // IdleBehavior, if not run
	TagTemplate = "drover-template" // Policy.Template
	TagToken    = "drover-token"    // SHA-256 of the one-time token, hex
)

// Durable is the part of an instance that outlives a restart of the server: what the raft log and its snapshots keep.
type Durable struct {
	ID         string // the intent's: ours, and the cloud's idempotency key
	Pool       string
	Provider   string
	Offering   string // Offering.Key
	Template   string // of the policy that it was made from; another one now means drift
	State      InstanceState
	StateAt    time.Time    // when it came into State
	Behavior   IdleBehavior // what an operator wants of it
	Bought     string       // why it was bought, for people
	LastError  string       // what went wrong last with it: with asking for it, with its boot; "" = nothing
	Why        string       // the code of why it is in this state
	Reason     string       // the same, for people
	ProviderID string       // the cloud's; "" until known
	NodeID     string       // which node used its token; no other may. "" until the agent called home
	Address    string
	Price      float64   // per hour
	Charged    float64   // that the ledger has of it
	RepricedAt time.Time // since when Price counts, if it changed while the machine ran; zero = since CreatedAt
	CostBefore float64   // what it cost until RepricedAt
	PlannedAt  time.Time
	CreatedAt  time.Time // when the cloud began to bill; zero until known
	ReadyAt    time.Time // when it first became active
	IdleAt     time.Time // since when it has no work, in the log: when this was written; zero while busy
	GoneAt     time.Time // zero while it is there
	// Of is the tag of the cluster whose machine it is, one of Identity.Former; "" = it is ours.
	Of string `codec:",omitempty" json:",omitempty"`
}

// Instance is a machine that the fleet bought, or is about to: what is kept of it, and what the cloud and its agent tell.
type Instance struct {
	Durable

	// Every decision reads these fields of every machine. They stand together in memory, since there may be ten thousand machines.
	Work        int             // pieces of work on it
	Capacity    drover.Capacity // of the whole machine
	Used        drover.Capacity // by work
	LostAt      time.Time       // since when its agent is silent; zero if it is not
	InterruptAt time.Time       // when the cloud takes it back; zero if no notice came
	ExpiresAt   time.Time       // zero = never
	Hedge       bool            // bought beside a slow one

	Type       string
	Zone       string
	Market     string
	QuotaGroup string
	QuotaUnits int64
	Billing    Billing
	Quiet      bool // draining, and its agent confirmed that nothing runs
	Adopted    bool // found in the cloud, not made by this process
	Ambiguous  bool // the create may or may not have happened
	Movable    bool // all of its work can be moved elsewhere
	Tags       map[string]string
}

// Busy reports whether work runs on it.
func (i *Instance) Busy() bool { return i.Work > 0 }

// Free returns the room on it.
func (i *Instance) Free() drover.Capacity { return i.Capacity.Sub(i.Used) }
