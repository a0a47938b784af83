package policy

// Rules is what one policy says, with coarse words replaced by what they stand for and with all that capabilities have in them. It is
// never changed once it was parsed. Labels are names, or globs in which * stands for any text; no glob has two * in a row.
type Rules struct {
	Namespaces  map[string]Namespace
	NodePools   map[string]Set[PoolCapability]
	HostVolumes map[string]Set[VolumeCapability]
	Parts       [Parts]Level
	Operator    Set[OperatorCapability]
}

// Namespace is what a policy says of the namespaces with a label.
type Namespace struct {
	Capabilities Set[Capability]
	Variables    map[string]Set[VariableCapability] // by the label of the path
}
