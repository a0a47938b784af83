package feasible

import (
	"fmt"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/volume"
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

// Volumes is what the state knows of host volumes. The zero value knows nothing, and refuses none.
type Volumes struct {
	Get    func(id string) *volume.HostVolume // nil = nothing is known of any
	Name   string                             // of the allocation that is to be placed, if claims matter
	Claims []*volume.HostVolumeClaim          // of its group
}

// claimed says why the allocation cannot have the volume, which the node calls as the request wants it: it has claimed another one; "" if
// it can.
func (v *Volumes) claimed(have *drover.HostVolumeInfo, r *drover.VolumeRequest) string {
	if !r.Sticky || v.Name == "" {
		return ""
	}
	for _, c := range v.Claims {
		if c.AllocName == v.Name && c.VolumeName == r.Source && c.VolumeID != have.ID {
			return fmt.Sprintf("is not the volume %s that %s has (claim %s)", c.VolumeID, v.Name, c.ID)
		}
	}
	return ""
}

// Knowing returns the filter, which from then on refuses volumes that cannot be mounted as the group wants.
func (f *Filter) Knowing(v Volumes) *Filter {
	f.known = v
	return f
}

// volumeReason says that the node does not have a volume, in Nomad's words, or that it has one which is not enough.
func volumeReason(v *drover.VolumeRequest, why string) string {
	const text = "missing compatible host volumes"
	if why == "" {
		return text
	}
	return text + ": " + v.Source + " " + why
}

// missingVolume returns the first host volume that the node does not have as the group wants it; nil if it has all. Of one that it has, why
// says what is amiss. Of volumes of which each allocation has its own, one is enough.
func (f *Filter) missingVolume(n *drover.Node) (v *drover.VolumeRequest, why string) {
	for _, v := range f.volumes {
		if ok, why := f.offers(n, v); !ok {
			return v, why
		}
	}
	return nil, ""
}

// offers reports whether the node has the volume, or one of its kind, for the job's namespace.
func (f *Filter) offers(n *drover.Node, v *drover.VolumeRequest) (ok bool, why string) {
	if !v.PerAlloc {
		return f.fits(n.HostVolumes[v.Source], v)
	}
	for name, have := range n.HostVolumes {
		if !strings.HasPrefix(name, v.Source+"[") {
			continue
		}
		if ok, _ := f.fits(have, v); ok {
			return true, ""
		}
	}
	return false, ""
}

// fits reports whether what a node has under the volume's name can be mounted as the group wants, and why not.
func (f *Filter) fits(have *drover.HostVolumeInfo, v *drover.VolumeRequest) (ok bool, why string) {
	if !have.OfferedTo(f.namespace) || have.ReadOnly && !v.ReadOnly {
		return false, ""
	}
	if why := f.known.claimed(have, v); why != "" {
		return false, why
	}
	if have.ID == "" || f.known.Get == nil { // those of the node's configuration have no modes
		return true, ""
	}
	stored := f.known.Get(have.ID)
	if stored == nil { // deleted since the node said that it has it
		return false, ""
	}
	why = stored.Refuses(v)
	return why == "", why
}
