package command

import "github.com/drover-project/drover"

// RegisterNode stores a node's registration. Kept from the store if the node is known: CreateIndex, drain,
// eligibility, events, LastDrain. Result: nil. Errors: Forbidden if the secret differs from the first one given.
type RegisterNode struct {
	Node  *drover.Node
	Evals []*drover.Evaluation
	Time  int64
}

// UpdateNodeStatuses changes the statuses of nodes. Unknown nodes are skipped. Result: nil.
type UpdateNodeStatuses struct {
	Nodes []NodeStatus
	Evals []*drover.Evaluation
	Time  int64
}

// NodeStatus is one node's new status, and what its history gets.
type NodeStatus struct {
	NodeID      string
	Status      string // "" keeps it (only an event)
	Description string
	Event       *drover.NodeEvent
}

// SetEligibility lets allocations be placed on a node or not. Result: nil. Errors: NotFound, Conflict while draining.
type SetEligibility struct {
	NodeID      string
	Eligibility string
	Event       *drover.NodeEvent
	Evals       []*drover.Evaluation
	Time        int64
}

// What events of nodes say of drains and of whether nodes take work: who decided last is told by them.
const (
	DrainEvent    = "Drain" // subsystem
	DrainComplete = "Node drain complete"
	MarkedAs      = "Node marked as "
)

// SetDrain starts a drain, or ends it with a nil Strategy. Result: nil. Errors: NotFound.
type SetDrain struct {
	NodeID       string
	Strategy     *drover.DrainStrategy
	MarkEligible bool // when ending: let allocations be placed again
	Completed    bool // when ending: it is complete, not canceled
	Meta         map[string]string
	Event        *drover.NodeEvent
	Evals        []*drover.Evaluation
	Time         int64
}

// DeregisterNodes forgets nodes. Unknown ids are skipped. Result: nil.
type DeregisterNodes struct {
	IDs   []string
	Evals []*drover.Evaluation
	Time  int64
}

// SetNodeMeta overlays the node's own meta: a nil value removes the key, also one of the node's own. Keys that are not
// named keep what was set before. Result: the node's *drover.Node. Errors: NotFound.
type SetNodeMeta struct {
	NodeID string
	Meta   map[string]*string
	Evals  []*drover.Evaluation
	Time   int64
}

// Kind implements Command.
func (*SetNodeMeta) Kind() Kind { return KindSetNodeMeta }

// Kind implements Command.
func (*RegisterNode) Kind() Kind { return KindRegisterNode }

// Kind implements Command.
func (*UpdateNodeStatuses) Kind() Kind { return KindUpdateNodeStatuses }

// Kind implements Command.
func (*SetEligibility) Kind() Kind { return KindSetEligibility }

// Kind implements Command.
func (*SetDrain) Kind() Kind { return KindSetDrain }

// Kind implements Command.
func (*DeregisterNodes) Kind() Kind { return KindDeregisterNodes }
