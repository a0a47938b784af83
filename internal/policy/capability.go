package policy

// Capability is what may be done with the jobs of a namespace and what they make.
type Capability uint8

// The capabilities in a namespace. Those from ReadRunner on are Drover's own, the others Nomad's.
const (
	ListJobs Capability = iota
	ParseJob
	ReadJob
	SubmitJob
	DispatchJob
	ReadLogs
	ReadFS
	AllocExec
	AllocNodeExec
	AllocLifecycle
	SentinelOverride
	CSIRegisterPlugin
	CSIWriteVolume
	CSIReadVolume
	CSIListVolume
	CSIMountVolume
	HostVolumeCreate
	HostVolumeRegister
	HostVolumeRead
	HostVolumeWrite
	HostVolumeDelete
	ListScalingPolicies
	ReadScalingPolicy
	ReadJobScaling
	ScaleJob
	SubmitRecommendation
	RegisterJob
	RevertJob
	DeregisterJob
	PurgeJob
	EvaluateJob
	PlanJob
	TagJobVersion
	StableJob
	FailDeployment
	PauseDeployment
	PromoteDeployment
	UnblockDeployment
	CancelDeployment
	SetAllocHealth
	GCAllocation
	PauseAllocation
	ForcePeriodicJob
	DeleteServiceRegistration
	ReadRunner       // list and read environments, runners, executions and receipts
	ClaimRunner      // claim runners, and release one's own
	Execute          // run and attach to executions
	ReadFiles        // read files of runners
	WriteFiles       // write and delete files of runners
	WriteEnvironment // make, change and delete environments
	ReadServices     // find services; who may read jobs may, and so may each workload of the namespace
	capabilities     // how many there are
)

// capabilityNames are the words of the policy language.
var capabilityNames = names[Capability]{
	"list-jobs", "parse-job", "read-job", "submit-job", "dispatch-job", "read-logs", "read-fs", "alloc-exec", "alloc-node-exec",
	"alloc-lifecycle", "sentinel-override", "csi-register-plugin", "csi-write-volume", "csi-read-volume", "csi-list-volume",
	"csi-mount-volume", "host-volume-create", "host-volume-register", "host-volume-read", "host-volume-write", "host-volume-delete",
	"list-scaling-policies", "read-scaling-policy", "read-job-scaling", "scale-job", "submit-recommendation", "register-job",
	"revert-job", "deregister-job", "purge-job", "evaluate-job", "plan-job", "tag-job-version", "stable-job", "fail-deployment",
	"pause-deployment", "promote-deployment", "unblock-deployment", "cancel-deployment", "set-alloc-health-deployment",
	"gc-allocation", "pause-allocation", "force-periodic-job", "delete-service-registration",
	"read-runner", "claim-runner", "execute", "read-files", "write-files", "write-environment", "read-services",
}

// String returns the word of the policy language.
func (c Capability) String() string { return capabilityNames.name(c) }

// Capabilities returns all capabilities in a namespace.
func Capabilities() []Capability {
	all := make([]Capability, capabilities)
	for i := range all {
		all[i] = Capability(i)
	}
	return all
}

// VariableCapability is what may be done with variables at a path.
type VariableCapability uint8

// The capabilities of variables.
const (
	ListVariables VariableCapability = iota
	ReadVariable
	WriteVariable
	DestroyVariable
)

var variableNames = names[VariableCapability]{"list", "read", "write", "destroy"}

// String returns the word of the policy language.
func (c VariableCapability) String() string { return variableNames.name(c) }

// PoolCapability is what may be done with a node pool.
type PoolCapability uint8

// The capabilities of node pools.
const (
	ReadPool PoolCapability = iota
	WritePool
	DeletePool
)

var poolNames = names[PoolCapability]{"read", "write", "delete"}

// String returns the word of the policy language.
func (c PoolCapability) String() string { return poolNames.name(c) }

// VolumeCapability is what may be done with a host volume.
type VolumeCapability uint8

// The capabilities of host volumes.
const (
	MountReadOnly VolumeCapability = iota
	MountReadWrite
)

var volumeNames = names[VolumeCapability]{"mount-readonly", "mount-readwrite"}

// String returns the word of the policy language.
func (c VolumeCapability) String() string { return volumeNames.name(c) }

// OperatorCapability is something of an operator's that can be given alone.
type OperatorCapability uint8

// The capabilities of operators.
const (
	SnapshotSave OperatorCapability = iota
	LicenseRead
	KeyringRead
	KeyringRotate
	KeyringDelete
)

var operatorNames = names[OperatorCapability]{"snapshot-save", "license-read", "keyring-read", "keyring-rotate", "keyring-delete"}

// String returns the word of the policy language.
func (c OperatorCapability) String() string { return operatorNames.name(c) }
