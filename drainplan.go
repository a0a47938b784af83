package drover

import (
	"net/url"
	"strconv"
)

// Parameters of the question what a drain would do: the node's id, and what of DrainSpec counts.
const (
	DrainPlanNode         = "node_id"
	DrainPlanIgnoreSystem = "ignore_system"
	DrainPlanMoveBatch    = "move_batch"
)

// PlanQuery is the question what such a drain of the node would do, as GET /v1/drain/plan is asked it.
func (s DrainSpec) PlanQuery(nodeID string) url.Values {
	return url.Values{
		DrainPlanNode: {nodeID}, DrainPlanIgnoreSystem: {strconv.FormatBool(s.IgnoreSystemJobs)},
		DrainPlanMoveBatch: {strconv.FormatBool(s.MoveBatch)},
	}
}

// DrainPlan is what a drain of a node would do, at its end: where each allocation would go as things are now.
type DrainPlan struct {
	NodeID   string
	NodeName string
	Moves    []DrainMove // by namespace, job and name
	// Hidden is how many allocations are of jobs that the caller may not read.
	Hidden int `json:",omitempty"`
}

// DrainMove is what would become of one allocation.
type DrainMove struct {
	AllocID, Name, Namespace, JobID, TaskGroup string
	// Fate is one of the constants below.
	Fate string
	// To is where its replacement would be placed.
	ToNodeID   string `json:",omitempty"`
	ToNodeName string `json:",omitempty"`
	// Why there is no other place, or what else is to be known.
	Why []string `json:",omitempty"`
}

// Fates of allocations of a node that is drained.
const (
	DrainMoves = "moves"   // another node takes it
	DrainWaits = "no room" // it is stopped at the deadline, and waits for a place
	DrainEnds  = "ends"    // it may run on until the deadline, and is not begun anew
	DrainStays = "stays"   // the drain leaves it
)
