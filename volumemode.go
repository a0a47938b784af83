package drover

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// isHost reports whether the request is for a host volume, which is all that there is.
func (r *VolumeRequest) isHost() bool { return r != nil && (r.Type == "" || r.Type == "host") }

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

// Refuses says why the volume cannot be mounted in the way that the request wants, whoever else mounts it; "" if it can. The rules are
// Nomad's: the modes must be those of one of the volume's capabilities, and single-node-reader-only is for requests that only read,
// single-node-writer for those that write.
func (v *HostVolume) Refuses(r *VolumeRequest) string {
	access, attachment := r.Access(), cmp.Or(r.AttachmentMode, AttachFileSystem)
	switch {
	case !slices.ContainsFunc(v.RequestedCapabilities, func(c *HostVolumeCapability) bool {
		return c != nil && c.AccessMode == access && c.AttachmentMode == attachment
	}):
		return fmt.Sprintf("has no capability with access_mode %s and attachment_mode %s", access, attachment)
	case access == AccessReader && !r.ReadOnly:
		return "is not written with access_mode " + access
	case access == AccessWriter && r.ReadOnly:
		return "is not mounted read_only with access_mode " + access
	}
	return ""
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
		if r.isHost() && !r.ReadOnly {
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
