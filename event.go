package drover

// Event topics.
const (
	TopicAll         = "*"
	TopicJob         = "Job"
	TopicEvaluation  = "Evaluation"
	TopicAllocation  = "Allocation"
	TopicDeployment  = "Deployment"
	TopicNode        = "Node"
	TopicNodePool    = "NodePool"
	TopicService     = "Service"
	TopicOperator    = "Operator"
	TopicACLToken    = "ACLToken"
	TopicACLPolicy   = "ACLPolicy"
	TopicACLRole     = "ACLRole"
	TopicAuthMethod  = "ACLAuthMethod"
	TopicBindingRule = "ACLBindingRule"
	TopicHostVolume  = "HostVolume"
	TopicVolumeClaim = "HostVolumeClaim" // ours
	TopicEnvironment = "Environment"     // ours
	TopicRunner      = "Runner"          // ours
	TopicExecution   = "Execution"       // ours
	TopicInstance    = "Instance"        // ours: machines of the fleet
	TopicFleetPool   = "FleetPool"       // ours
	TopicRevocation  = "Revocation"      // ours: certificates that are refused
)

// Event is one change, as the event stream sends it.
type Event struct {
	Topic      string
	Type       string
	Key        string
	Namespace  string
	FilterKeys []string
	Index      uint64
	Payload    map[string]any // {"Allocation": …}, {"Job": …}, …
}

// Events is one line of the event stream: what one raft entry changed.
type Events struct {
	Index  uint64
	Events []Event
}
