package drover

// HostVolume is a folder of a node that was made, or told of, through the API, and that jobs of its namespace mount by its name.
type HostVolume struct {
	Namespace   string
	ID          string
	Name        string // unique on its node
	PluginID    string // what makes it on the node: DefaultVolumePlugin
	NodePool    string
	NodeID      string
	Constraints []*Constraint `json:",omitempty"` // that its node had to meet

	// What was asked for, and what the plugin gave. 0 = no bound, and unknown.
	RequestedCapacityMinBytes int64
	RequestedCapacityMaxBytes int64
	CapacityBytes             int64
	RequestedCapabilities     []*HostVolumeCapability

	Parameters map[string]string `json:",omitempty"` // for the plugin
	HostPath   string            // where it is on the node
	State      string
	// StateDescription says what went wrong on the node, for people. Ours.
	StateDescription string `json:",omitempty"`

	// Registered: the folder was there before. The node neither makes nor deletes it.
	Registered bool `json:"-"`
	// Wanted is the index of the last request about it, Done that of the last one which the node has done, or could not do.
	Wanted uint64 `json:"-"`
	Done   uint64 `json:"-"`

	CreateIndex uint64
	CreateTime  int64 // unix ns
	ModifyIndex uint64
	ModifyTime  int64 // unix ns

	// Allocations that mount it and have not ended; only in answers.
	Allocations []*AllocationListStub `json:",omitempty" codec:"-"`
}

// DefaultVolumePlugin makes an empty folder.
const DefaultVolumePlugin = "mkdir"

// HostVolume.State.
const (
	HostVolumePending     = "pending"     // the node has not made it yet
	HostVolumeReady       = "ready"       // allocations can mount it
	HostVolumeUnavailable = "unavailable" // its node is down, or does not have it
	HostVolumeDeleting    = "deleting"    // the node has not deleted it yet. Ours
)

// HostVolumeCapability is a way in which a volume may be mounted.
type HostVolumeCapability struct {
	AttachmentMode string
	AccessMode     string
}

// HostVolumeCapability's modes.
const (
	AttachFileSystem  = "file-system"
	AttachBlockDevice = "block-device"

	AccessReader       = "single-node-reader-only"
	AccessWriter       = "single-node-writer"
	AccessSingleWriter = "single-node-single-writer" // one allocation writes, others may read
	AccessMultiWriter  = "single-node-multi-writer"
)

// HostVolumeReport is what a node says about a volume that control wants of it.
type HostVolumeReport struct {
	Namespace     string
	Wanted        uint64 // HostVolume.Wanted of the request that it has done, or could not do
	CapacityBytes int64
	Failure       string // why it could not; "" = it could
	Gone          bool   // it has been deleted, or never was there
}

// Offered reports whether allocations can mount the volume.
func (i *HostVolumeInfo) Offered() bool {
	return i != nil && (i.Report == nil || i.Report.Failure == "" && !i.Report.Gone)
}

// OfferedTo reports whether allocations of the namespace can mount the volume. Those of the node's configuration are everybody's.
func (i *HostVolumeInfo) OfferedTo(namespace string) bool {
	return i.Offered() && (i.Report == nil || i.Report.Namespace == namespace)
}

// HostVolumeStub is a volume in lists.
type HostVolumeStub struct {
	Namespace     string
	ID            string
	Name          string
	PluginID      string
	NodePool      string
	NodeID        string
	CapacityBytes int64
	State         string
	CreateIndex   uint64
	CreateTime    int64
	ModifyIndex   uint64
	ModifyTime    int64
}

// Stub returns the volume as lists have it.
func (v *HostVolume) Stub() *HostVolumeStub {
	return &HostVolumeStub{
		Namespace: v.Namespace, ID: v.ID, Name: v.Name, PluginID: v.PluginID, NodePool: v.NodePool, NodeID: v.NodeID,
		CapacityBytes: v.CapacityBytes, State: v.State,
		CreateIndex: v.CreateIndex, CreateTime: v.CreateTime, ModifyIndex: v.ModifyIndex, ModifyTime: v.ModifyTime,
	}
}

// MountedBy reports whether the allocation mounts the volume, or is to.
func (v *HostVolume) MountedBy(a *Allocation) bool {
	if a.Job == nil || a.Namespace != v.Namespace || a.NodeID != v.NodeID {
		return false
	}
	g := a.Job.Group(a.TaskGroup)
	if g == nil {
		return false
	}
	for _, r := range g.Volumes {
		if r.isHost() && r.SourceOf(a.Index()) == v.Name {
			return true
		}
	}
	return false
}
