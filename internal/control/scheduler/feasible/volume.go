package feasible

import (
	"strings"

	"github.com/drover-project/drover"
)

// Single returns the group as its allocation with the index asks for it: where allocations have different volumes, with that
// one's. The group itself is not changed.
func Single(g *drover.TaskGroup, index int) *drover.TaskGroup {
	if index < 0 || !g.PerAlloc() {
		return g
	}
	one := *g
	one.Volumes = make(map[string]*drover.VolumeRequest, len(g.Volumes))
	for name, r := range g.Volumes {
		own := *r
		own.Source, own.PerAlloc = r.SourceOf(index), false
		one.Volumes[name] = &own
	}
	return &one
}

// missingVolume returns the first host volume that the node does not have, or not writable where the group wants to write; nil if
// it has all. Of volumes of which each allocation has its own, one is enough.
func (f *Filter) missingVolume(n *drover.Node) *drover.VolumeRequest {
	for _, v := range f.volumes {
		if !offers(n, v, f.namespace) {
			return v
		}
	}
	return nil
}

// offers reports whether the node has the volume, or one of its kind, for the namespace.
func offers(n *drover.Node, v *drover.VolumeRequest, namespace string) bool {
	fits := func(have *drover.HostVolumeInfo) bool {
		return have.OfferedTo(namespace) && (!have.ReadOnly || v.ReadOnly)
	}
	if !v.PerAlloc {
		return fits(n.HostVolumes[v.Source])
	}
	for name, have := range n.HostVolumes {
		if strings.HasPrefix(name, v.Source+"[") && fits(have) {
			return true
		}
	}
	return false
}
