package volume

import (
	"github.com/drover-project/drover"
	"github.com/drover-project/drover/constraint"
)

// HostVolume is a folder of a node that was made, or told of, through the API, and that jobs of its namespace mount by its name.
type HostVolume struct {
	Namespace   string
	ID          string
	Name        string // unique on its node
	PluginID    string // what makes it on the node: DefaultVolumePlugin
	NodePool    string
	NodeID      string
	Constraints []*constraint.Constraint `json:",omitempty"` // that its node had to meet

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
	Allocations []*drover.AllocationListStub `json:",omitempty" codec:"-"`
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
func (v *HostVolume) MountedBy(a *drover.Allocation) bool {
	if a.Job == nil || a.Namespace != v.Namespace || a.NodeID != v.NodeID {
		return false
	}
	g := a.Job.Group(a.TaskGroup)
	if g == nil {
		return false
	}
	for _, r := range g.Volumes {
		if r.IsHost() && r.SourceOf(a.Index()) == v.Name {
			return true
		}
	}
	return false
}

// HostVolumeClaim binds the volume of a name of a group's allocation to the one of that name which it had first: the allocation's
// replacements have that one too. The volumes of a group that are sticky are claimed when one of its allocations is placed.
type HostVolumeClaim struct {
	ID            string
	Namespace     string
	JobID         string
	TaskGroupName string
	AllocID       string // the newest allocation that has the volume
	AllocName     string // the name of all of them. Ours
	VolumeID      string
	VolumeName    string
	CreateIndex   uint64
	ModifyIndex   uint64
}
