package command

import (
	"github.com/drover-project/drover/fleet"
)

// InitFleet makes the fleet's identity, unless there is one. Result: nil.
type InitFleet struct{ Identity fleet.Identity }

// NameFleet says that machines with the tag are ours, too: those of the configured owner, or of a cluster whose archive was restored
// here and which the operator says is gone. A fleet without an Owner gets this one. Result: nil.
type NameFleet struct{ Tag string }

// PutFleetPools stores pools of the fleet, and makes the node pools that their machines join. Result: nil.
// Errors: Invalid.
type PutFleetPools struct{ Pools []*fleet.Pool }

// ApplyFleetPools is PutFleetPools for who saw the pools as they were at a version (fleet.PoolsVersion). Result: nil.
// Errors: Invalid; Conflict if they changed since.
type ApplyFleetPools struct {
	Pools   []*fleet.Pool
	Version uint64
}

// DeleteFleetPools forgets pools; unknown ones are skipped. Result: nil.
type DeleteFleetPools struct{ Names []string }

// UpdateFleet records machines before they are asked for, and what became of them; what it costs is added to the
// ledger. Which node used a machine's token is kept whatever the new row says. Result: nil.
type UpdateFleet struct {
	Put     []*fleet.InstanceRecord
	Forget  []string // rows that nobody needs any more; unknown ones are skipped
	Costs   []fleet.Cost
	Learned *fleet.Memory // replaces what was learned of the provider; nil changes nothing
}

// BindFleetNode notes that a node used the one-time token of a machine. Result: nil. Errors: NotFound for a machine
// that is not recorded or gone; Conflict if another node used it before.
type BindFleetNode struct{ Instance, Node string }

// Kind implements Command.
func (*InitFleet) Kind() Kind { return KindInitFleet }

// Kind implements Command.
func (*NameFleet) Kind() Kind { return KindNameFleet }

// Kind implements Command.
func (*PutFleetPools) Kind() Kind { return KindPutFleetPools }

// Kind implements Command.
func (*ApplyFleetPools) Kind() Kind { return KindApplyFleetPools }

// Kind implements Command.
func (*DeleteFleetPools) Kind() Kind { return KindDeleteFleetPools }

// Kind implements Command.
func (*UpdateFleet) Kind() Kind { return KindUpdateFleet }

// Kind implements Command.
func (*BindFleetNode) Kind() Kind { return KindBindFleetNode }
