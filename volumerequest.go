package drover

import (
	"maps"
	"slices"
)

// Modes in which a volume is mounted.
const (
	AttachFileSystem  = "file-system"
	AttachBlockDevice = "block-device"

	AccessReader       = "single-node-reader-only"
	AccessWriter       = "single-node-writer"
	AccessSingleWriter = "single-node-single-writer" // one allocation writes, others may read
	AccessMultiWriter  = "single-node-multi-writer"
)

// AccessModes lists them.
func AccessModes() []string {
	return []string{AccessReader, AccessWriter, AccessSingleWriter, AccessMultiWriter}
}

// IsHost reports whether the request is for a host volume, which is all that there is.
func (r *VolumeRequest) IsHost() bool { return r != nil && (r.Type == "" || r.Type == "host") }

// Access is the mode in which the request mounts a dynamic volume: the one that it names, else by whether it writes, as in Nomad.
func (r *VolumeRequest) Access() string {
	switch {
	case r.AccessMode != "":
		return r.AccessMode
	case r.ReadOnly:
		return AccessReader
	}
	return AccessWriter
}

// VolumeWrite says that an allocation writes a host volume.
type VolumeWrite struct {
	Name  string
	Alone bool // no other allocation may
}

// VolumeWrites lists the host volumes that the group's allocation with the index writes, by name.
func (g *TaskGroup) VolumeWrites(index int) []VolumeWrite {
	var writes map[string]bool // alone, by name
	for _, r := range g.Volumes {
		if r.IsHost() && !r.ReadOnly {
			if writes == nil {
				writes = map[string]bool{}
			}
			name := r.SourceOf(index)
			writes[name] = writes[name] || r.AccessMode == AccessSingleWriter
		}
	}
	out := make([]VolumeWrite, 0, len(writes))
	for _, name := range slices.Sorted(maps.Keys(writes)) {
		out = append(out, VolumeWrite{name, writes[name]})
	}
	return out
}

// VolumeWrites lists the host volumes that the allocation writes, by name.
func (a *Allocation) VolumeWrites() []VolumeWrite {
	if a.Job == nil {
		return nil
	}
	g := a.Job.Group(a.TaskGroup)
	if g == nil || len(g.Volumes) == 0 {
		return nil
	}
	return g.VolumeWrites(a.Index())
}

// Contends reports whether two allocations that write so cannot be on one node: both write the volume, and one of them wants to be alone.
// Volumes of a node's configuration have no modes, so there it means nothing.
func (w VolumeWrite) Contends(x VolumeWrite) bool { return w.Name == x.Name && (w.Alone || x.Alone) }

// sticky reports whether the group's allocations have claims of volumes. Those of a system job stay on their nodes anyway.
func (g *TaskGroup) sticky() bool {
	for _, r := range g.Volumes {
		if r.IsHost() && r.Sticky {
			return true
		}
	}
	return false
}

// OwnVolumes reports whether the group's allocations have different volumes, so that they cannot all go to the same nodes.
func (g *TaskGroup) OwnVolumes() bool { return g.PerAlloc() || g.sticky() }
