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
	KindRaiseVersion
	KindRestoreState
	KindSetAutopilot
	KindApplyFleetPools
	KindNameFleet
	KindBootstrapACL
	KindUpsertACLTokens
	KindDeleteACLTokens
	KindUpsertACLPolicies
	KindDeleteACLPolicies
	KindUpsertACLRoles
	KindDeleteACLRoles
	KindPutOneTimeToken
	KindExchangeOneTimeToken
	KindExpireACLTokens
	KindPutRootKey
	KindSetRootKeyState
	KindDeleteRootKeys
	KindUpsertAuthMethods
	KindDeleteAuthMethods
	KindUpsertBindingRules
	KindDeleteBindingRules
	KindChangeVariable
	KindUpsertQuotas
	KindDeleteQuotas
	KindBeginExecution
	KindDropExecution
	KindUpsertAdmissionRules
	KindDeleteAdmissionRules
	KindUpsertHostVolume
	KindDeleteHostVolume
	KindDeleteVolumeClaim
	KindRevokeCertificate
	KindForgetRevocations
	kindEnd
)

// The cluster versions that this program reads. Each stands for the commands, their fields and the snapshots that may be written
// while the servers of a cluster have agreed on it. A program writes what its cluster's version has, and not what it could.
const (
	Oldest = 1
	Newest = 3
)

// begins is the first kind of each cluster version: kinds are appended, so all up to the next version's first belong to it.
var begins = [Newest + 1]Kind{1: KindBarrier, 2: KindInitCluster + 1, 3: KindBootstrapACL}

// Since returns the lowest cluster version that has the kind.
func (k Kind) Since() int {
	for version := Newest; version > 1; version-- {
		if k >= begins[version] {
			return version
		}
	}
	return 1
}

// Needs returns the lowest cluster version in which the command may be written.
func Needs(c Command) int {
	need := c.Kind().Since()
	switch c := c.(type) {
	case *Batch:
		for _, one := range c.Commands {
			need = max(need, Needs(one))
		}
	case *UpsertNamespaces:
		for _, ns := range c.Namespaces {
			if ns.Capabilities != nil || ns.NodePoolConfiguration != nil || ns.Images != nil || ns.Quota != "" ||
				len(ns.RequiredExtraClaims)+len(ns.OptionalExtraClaims) > 0 {
				return max(need, 3)
			}
		}
	case *RegisterJob:
		if c.Versions != 0 {
			need = max(need, 3)
		}
	case *DispatchJob:
		need = max(need, Needs(&c.Register))
	case *RaiseVersion:
		need = 1 // it is how a version begins
	}
	return need
}

var kindNames = [...]string{
	"", "Barrier", "Batch", "RegisterJob", "DeregisterJob", "UpdateEvals", "DeleteEvals", "ApplyPlans", "UpdateAllocs",
	"TransitionAllocs", "StopAllocs", "ClaimRunners", "RegisterNode", "UpdateNodeStatuses", "SetEligibility",
	"SetDrain", "DeregisterNodes", "SetSchedulerConfig", "UpsertNamespaces", "DeleteNamespaces", "UpsertNodePools",
	"DeleteNodePools", "UpsertDeployment", "UpdateDeploymentStatus", "SetAllocHealth", "PromoteDeployment",
	"SetJobStability", "TagJobVersion", "Reap", "RecordScaling", "SetNodeMeta",
	"InitFleet", "PutFleetPools", "DeleteFleetPools", "UpdateFleet", "BindFleetNode",
	"TellExecutions", "InitCluster", "DispatchJob", "RecordExecutions",
	"BeginIncarnation", "EndIncarnation", "RecordRunners", "RaiseVersion", "RestoreState", "SetAutopilot", "ApplyFleetPools",
	"NameFleet",
	"BootstrapACL", "UpsertACLTokens", "DeleteACLTokens", "UpsertACLPolicies", "DeleteACLPolicies", "UpsertACLRoles",
	"DeleteACLRoles", "PutOneTimeToken", "ExchangeOneTimeToken", "ExpireACLTokens",
	"PutRootKey", "SetRootKeyState", "DeleteRootKeys",
	"UpsertAuthMethods", "DeleteAuthMethods", "UpsertBindingRules", "DeleteBindingRules", "ChangeVariable",
	"UpsertQuotas", "DeleteQuotas", "BeginExecution", "DropExecution",
	"UpsertAdmissionRules", "DeleteAdmissionRules",
	"UpsertHostVolume", "DeleteHostVolume", "DeleteVolumeClaim",
	"RevokeCertificate", "ForgetRevocations",
}

// String returns the command's name.
func (k Kind) String() string {
	if k > 0 && int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}
