package command

// EventType is Nomad's name of what a command does; all rows that it changes are told under it.
func (k Kind) EventType() string {
	switch k {
	case KindRegisterJob, KindDispatchJob:
		return "JobRegistered"
	case KindDeregisterJob:
		return "JobDeregistered"
	case KindUpdateEvals:
		return "EvaluationUpdated"
	case KindApplyPlans:
		return "PlanResult"
	case KindUpdateAllocs, KindClaimRunners, KindRecordRunners:
		return "AllocationUpdated"
	case KindTransitionAllocs, KindStopAllocs:
		return "AllocationUpdateDesiredStatus"
	case KindRegisterNode, KindSetNodeMeta:
		return "NodeRegistration"
	case KindUpdateNodeStatuses:
		return "NodeStreamEvent"
	case KindSetEligibility:
		return "NodeEligibility"
	case KindSetDrain:
		return "NodeDrain"
	case KindDeregisterNodes:
		return "NodeDeregistration"
	case KindUpsertNodePools:
		return "NodePoolUpserted"
	case KindDeleteNodePools:
		return "NodePoolDeleted"
	case KindUpsertDeployment, KindUpdateDeploymentStatus:
		return "DeploymentStatusUpdate"
	case KindSetAllocHealth:
		return "DeploymentAllocHealth"
	case KindPromoteDeployment:
		return "DeploymentPromotion"
	case KindReap:
		return "JobBatchDeregistered"
	default:
		return k.String()
	}
}
