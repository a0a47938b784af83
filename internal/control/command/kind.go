package command

import "fmt"

// Kind is the type byte of an encoded command.
type Kind uint8

// The kinds. Append only: the numbers are in logs on disk.
const (
	_ Kind = iota
	KindBarrier
	KindBatch
	KindRegisterJob
	KindDeregisterJob
	KindUpdateEvals
	KindDeleteEvals
	KindApplyPlans
	KindUpdateAllocs
	KindTransitionAllocs
	KindStopAllocs
	KindClaimRunners
	KindRegisterNode
	KindUpdateNodeStatuses
	KindSetEligibility
	KindSetDrain
	KindDeregisterNodes
	KindSetSchedulerConfig
	KindUpsertNamespaces
	KindDeleteNamespaces
	KindUpsertNodePools
	KindDeleteNodePools
	KindUpsertDeployment
	KindUpdateDeploymentStatus
	KindSetAllocHealth
	KindPromoteDeployment
	KindSetJobStability
	KindTagJobVersion
	KindReap
	KindRecordScaling
	KindSetNodeMeta
	KindInitFleet
	KindPutFleetPools
	KindDeleteFleetPools
	KindUpdateFleet
	KindBindFleetNode
	KindTellExecutions
	KindInitCluster
	KindDispatchJob
	KindRecordExecutions
	KindBeginIncarnation
	KindEndIncarnation
	KindRecordRunners
	kindEnd
)

var kindNames = [...]string{
	"", "Barrier", "Batch", "RegisterJob", "DeregisterJob", "UpdateEvals", "DeleteEvals", "ApplyPlans", "UpdateAllocs",
	"TransitionAllocs", "StopAllocs", "ClaimRunners", "RegisterNode", "UpdateNodeStatuses", "SetEligibility",
	"SetDrain", "DeregisterNodes", "SetSchedulerConfig", "UpsertNamespaces", "DeleteNamespaces", "UpsertNodePools",
	"DeleteNodePools", "UpsertDeployment", "UpdateDeploymentStatus", "SetAllocHealth", "PromoteDeployment",
	"SetJobStability", "TagJobVersion", "Reap", "RecordScaling", "SetNodeMeta",
	"InitFleet", "PutFleetPools", "DeleteFleetPools", "UpdateFleet", "BindFleetNode",
	"TellExecutions", "InitCluster", "DispatchJob", "RecordExecutions",
	"BeginIncarnation", "EndIncarnation", "RecordRunners",
}

// String returns the command's name.
func (k Kind) String() string {
	if k > 0 && int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}
