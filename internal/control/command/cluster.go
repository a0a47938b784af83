package command

import (
	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/tenancy"
)

// InitCluster gives the cluster its id and epoch, unless it has them. Result: nil.
type InitCluster struct{ ID, Epoch string }

// RaiseVersion raises the cluster's version, unless it is as high. All servers of the cluster read the version. Result: nil.
type RaiseVersion struct{ Version int }

// SetAutopilot replaces how the servers are kept healthy. Result: bool, false if CAS failed.
type SetAutopilot struct {
	Config *cluster.Autopilot
	CAS    bool // only if the stored ModifyIndex is Config.ModifyIndex; 0 is nothing stored
}

// SetSchedulerConfig replaces the scheduler's configuration. Result: bool, false if CAS failed.
type SetSchedulerConfig struct {
	Config *drover.SchedulerConfiguration
	CAS    bool // only if the stored ModifyIndex is Config.ModifyIndex
}

// UpsertNamespaces stores namespaces, all or none. Result: nil. Errors: Invalid for a quota that there is not.
type UpsertNamespaces struct{ Namespaces []*tenancy.Namespace }

// DeleteNamespaces removes namespaces, all or none. Result: nil. Errors: NotFound, Conflict if one is in use, Invalid
// for the default one.
type DeleteNamespaces struct{ Names []string }

// UpsertNodePools stores node pools. Result: nil. Errors: Invalid for the pools "default" and "all".
type UpsertNodePools struct{ Pools []*drover.NodePool }

// DeleteNodePools removes node pools, all or none. Result: nil. Errors: NotFound, Conflict if one is in use, Invalid
// for the built-in ones.
type DeleteNodePools struct{ Names []string }

// Reap removes what garbage collection found, each with its index entries. Unknown ids are skipped. A job is reaped
// with its versions and summary. Result: nil.
type Reap struct {
	Evals       []string
	Allocs      []string
	Jobs        []drover.NamespacedID
	Nodes       []string
	Deployments []string
}

// Batch applies commands one after the other in one entry, at one index. Each succeeds or fails by itself.
// Result: []Result in their order.
type Batch struct{ Commands []Command }

// Barrier changes nothing; once it is applied, everything proposed before is. Result: nil.
type Barrier struct{}

// Kind implements Command.
func (*InitCluster) Kind() Kind { return KindInitCluster }

// Kind implements Command.
func (*RaiseVersion) Kind() Kind { return KindRaiseVersion }

// Kind implements Command.
func (*SetAutopilot) Kind() Kind { return KindSetAutopilot }

// Kind implements Command.
func (*SetSchedulerConfig) Kind() Kind { return KindSetSchedulerConfig }

// Kind implements Command.
func (*UpsertNamespaces) Kind() Kind { return KindUpsertNamespaces }

// Kind implements Command.
func (*DeleteNamespaces) Kind() Kind { return KindDeleteNamespaces }

// Kind implements Command.
func (*UpsertNodePools) Kind() Kind { return KindUpsertNodePools }

// Kind implements Command.
func (*DeleteNodePools) Kind() Kind { return KindDeleteNodePools }

// Kind implements Command.
func (*Reap) Kind() Kind { return KindReap }

// Kind implements Command.
func (*Batch) Kind() Kind { return KindBatch }

// Kind implements Command.
func (*Barrier) Kind() Kind { return KindBarrier }
