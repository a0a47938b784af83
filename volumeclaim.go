package drover

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

// sticky reports whether the group's allocations have claims of volumes. Those of a system job stay on their nodes anyway.
func (g *TaskGroup) sticky() bool {
	for _, r := range g.Volumes {
		if r.isHost() && r.Sticky {
			return true
		}
	}
	return false
}

// OwnVolumes reports whether the group's allocations have different volumes, so that they cannot all go to the same nodes.
func (g *TaskGroup) OwnVolumes() bool { return g.PerAlloc() || g.sticky() }
