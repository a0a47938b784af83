package command

import (
	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/exchange"
)

// UpdateAllocs merges what nodes observed into their allocations. Unknown allocations, and those of another node, are
// skipped; an allocation that ended does not come back. Result: nil.
type UpdateAllocs struct {
	Nodes []NodeUpdates
	Evals []*drover.Evaluation
	Time  int64
}

// NodeUpdates is what one node observed.
type NodeUpdates struct {
	NodeID  string
	Updates []exchange.AllocUpdate
}

// TransitionAllocs sets desired transitions; nil fields keep what was there. Unknown ids are skipped. Result: nil.
type TransitionAllocs struct {
	Transitions map[string]drover.DesiredTransition // by allocation
	Evals       []*drover.Evaluation
	Time        int64
}

// StopAllocs makes control want the allocations gone, without a plan (released runners). Unknown ids and those that
// are already stopped are skipped. Result: nil.
type StopAllocs struct {
	IDs         []string
	Description string
	Evals       []*drover.Evaluation
	Time        int64
}

// ClaimRunners records which warm runners were handed out, and how many more claims wait. Result: []ClaimResult in the
// order of Claims.
type ClaimRunners struct {
	Claims  []RunnerClaim
	Demands []PoolDemand
	Evals   []*drover.Evaluation
	Time    int64
}

// PoolDemand sets the demand of the pools of a job, as the same version of it.
type PoolDemand struct {
	Namespace string
	JobID     string
	Demand    int
}

// RunnerClaim hands out one runner.
type RunnerClaim struct {
	AllocID string
	Claim   drover.Claim
	Bounded bool // refused beyond the quota of its namespace: its claimer was not answered
}

// ClaimResult says what became of a claim: nil error, also when it was recorded before (same RunnerID); Conflict if
// another claimed it or the allocation ended or is stopped; NotFound. Exhausted of a bounded one beyond the quota.
type ClaimResult struct {
	AllocID string
	Err     error
}

// Kind implements Command.
func (*UpdateAllocs) Kind() Kind { return KindUpdateAllocs }

// Kind implements Command.
func (*TransitionAllocs) Kind() Kind { return KindTransitionAllocs }

// Kind implements Command.
func (*StopAllocs) Kind() Kind { return KindStopAllocs }

// Kind implements Command.
func (*ClaimRunners) Kind() Kind { return KindClaimRunners }
