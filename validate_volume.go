package drover

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/validation"
)

// validateVolumes checks the volumes that a group asks for. The scheduler looks only at those of type host.
func (g *TaskGroup) validateVolumes(v *validation.Report, j *Job, at string) {
	for name, r := range g.Volumes {
		where := fmt.Sprintf("%s.volume[%s]", at, name)
		if r == nil {
			v.Addf(where, "must not be null")
			continue
		}
		v.Check(r.Type != "csi", where+".Type", "is not supported: Drover has no CSI: use a host volume")
		v.Check(r.Type == "host" || r.Type == "csi", where+".Type", "must be host, got %q", r.Type)
		v.Check(r.Source != "", where+".Source", "must be set")
		r.validateModes(v, where)
		v.Check(!r.Sticky || g.Pool == nil, where+".Sticky", "must be false in a warm pool: its allocations do not keep their indexes")
		if r.PerAlloc {
			g.validatePerAlloc(v, j, where+".PerAlloc")
		}
	}
}

// validateModes checks how the volume is to be mounted. Those of the node's configuration are mounted in any mode.
func (r *VolumeRequest) validateModes(v *validation.Report, at string) {
	modes := AccessModes()
	v.Check(r.AccessMode == "" || slices.Contains(modes, r.AccessMode), at+".AccessMode", "must be one of %s, got %q",
		strings.Join(modes, ", "), r.AccessMode)
	v.Check(r.AccessMode != AccessReader || r.ReadOnly, at+".AccessMode", "%s takes read_only = true", AccessReader)
	v.Check(r.AttachmentMode != AttachBlockDevice, at+".AttachmentMode", "block-device is not supported: use file-system")
	v.Check(r.AttachmentMode == "" || r.AttachmentMode == AttachFileSystem || r.AttachmentMode == AttachBlockDevice, at+".AttachmentMode",
		"must be file-system, got %q", r.AttachmentMode)
}

// validatePerAlloc checks that one allocation at a time has an index, as with it goes the volume.
func (g *TaskGroup) validatePerAlloc(v *validation.Report, j *Job, at string) {
	v.Check(j.Type == JobTypeService || j.Type == JobTypeBatch, at, "must be false in a %s job: its allocations all have the index 0",
		j.Type)
	v.Check(g.Pool == nil, at, "must be false in a warm pool: its allocations do not keep their indexes")
	v.Check(g.Update == nil || g.Update.Canary == 0, at, "must be false with canaries: a canary has the index of what it replaces")
}

// validateVolumeMounts checks that each mount names a volume of the group and says where it goes.
func validateVolumeMounts(v *validation.Report, at string, g *TaskGroup, list []*VolumeMount) {
	for i, m := range list {
		where := fmt.Sprintf("%s.VolumeMounts[%d]", at, i)
		if m == nil {
			v.Addf(where, "must not be null")
			continue
		}
		_, known := g.Volumes[m.Volume]
		v.Check(known, where+".Volume", "%q is not a volume of the group", m.Volume)
		v.Check(m.Destination != "", where+".Destination", "must be set")
	}
}
