package policy

// What coarse policies of namespaces stand for. Nobody gets alloc-node-exec, sentinel-override and csi-register-plugin without having
// been given them by name.
var (
	readsNamespace = Of(ListJobs, ParseJob, ReadJob, CSIListVolume, CSIReadVolume, HostVolumeRead, ListScalingPolicies, ReadScalingPolicy,
		ReadJobScaling, ReadRunner)
	writesNamespace = readsNamespace | Of(SubmitJob, DispatchJob, ReadLogs, ReadFS, AllocExec, AllocLifecycle, CSIWriteVolume, CSIMountVolume,
		HostVolumeWrite, ScaleJob, SubmitRecommendation, ClaimRunner, Execute, ReadFiles, WriteFiles, WriteEnvironment)
	scalesNamespace = Of(ListScalingPolicies, ReadScalingPolicy, ReadJobScaling, ScaleJob)
)

// namespacePolicy returns what a coarse policy of a namespace stands for.
func namespacePolicy(word string) (Set[Capability], bool) {
	switch word {
	case "deny":
		return Denied[Capability](), true
	case "read":
		return readsNamespace, true
	case "write":
		return writesNamespace, true
	case "scale":
		return scalesNamespace, true
	}
	return 0, false
}

// implied says what a capability has in it.
var implied = map[Capability]Set[Capability]{
	SubmitJob: Of(ParseJob, RegisterJob, RevertJob, DeregisterJob, PurgeJob, EvaluateJob, PlanJob, TagJobVersion, StableJob, ScaleJob,
		FailDeployment, PauseDeployment, PromoteDeployment, UnblockDeployment, CancelDeployment, SetAllocHealth, GCAllocation,
		PauseAllocation, ForcePeriodicJob, DeleteServiceRegistration),
	DispatchJob:        Of(ForcePeriodicJob),
	ListJobs:           Of(CSIListVolume),
	ReadJob:            Of(CSIReadVolume, CSIListVolume, ReadScalingPolicy, ReadJobScaling, ReadServices),
	ReadFS:             Of(ReadLogs),
	CSIWriteVolume:     Of(CSIReadVolume, CSIListVolume),
	CSIReadVolume:      Of(CSIListVolume),
	CSIMountVolume:     Of(CSIReadVolume, CSIListVolume),
	HostVolumeWrite:    Of(HostVolumeCreate, HostVolumeRegister, HostVolumeDelete, HostVolumeRead),
	HostVolumeRegister: Of(HostVolumeCreate, HostVolumeRead),
	HostVolumeCreate:   Of(HostVolumeRead),
	ClaimRunner:        Of(ReadRunner),
	WriteEnvironment:   Of(ReadRunner),
}

// complete adds what the capabilities of the set have in them. Jobs that may be listed and read have scaling policies that may be listed.
func complete(s Set[Capability]) Set[Capability] {
	out := s
	for c := range capabilities {
		if s&(1<<c) != 0 {
			out |= implied[c]
		}
	}
	if out.Has(ListJobs) && out.Has(ReadJob) {
		out |= Of(ListScalingPolicies)
	}
	return out
}

// completeVariables adds the listing of what may be read or written.
func completeVariables(s Set[VariableCapability]) Set[VariableCapability] {
	if s&Of(ReadVariable, WriteVariable) != 0 {
		s |= Of(ListVariables)
	}
	return s
}

// poolPolicy returns what a coarse policy of node pools stands for.
func poolPolicy(word string) (Set[PoolCapability], bool) {
	switch word {
	case "deny":
		return Denied[PoolCapability](), true
	case "read":
		return Of(ReadPool), true
	case "write":
		return Of(ReadPool, WritePool, DeletePool), true
	}
	return 0, false
}

// volumePolicy returns what a coarse policy of host volumes stands for.
func volumePolicy(word string) (Set[VolumeCapability], bool) {
	switch word {
	case "deny":
		return Denied[VolumeCapability](), true
	case "read":
		return Of(MountReadOnly), true
	case "write":
		return Of(MountReadOnly, MountReadWrite), true
	}
	return 0, false
}

// completeVolume adds mounting read-only for who may mount for writing.
func completeVolume(s Set[VolumeCapability]) Set[VolumeCapability] {
	if s&Of(MountReadWrite) != 0 {
		s |= Of(MountReadOnly)
	}
	return s
}

// completePool adds reading for who may write.
func completePool(s Set[PoolCapability]) Set[PoolCapability] {
	if s&Of(WritePool) != 0 {
		s |= Of(ReadPool)
	}
	return s
}
