package drover

import (
	"fmt"
)

// validateVolumes checks the volumes that a group asks for. The scheduler looks only at those of type host.
func (g *TaskGroup) validateVolumes(v *report, at string) {
	for name, r := range g.Volumes {
		where := fmt.Sprintf("%s.volume[%s]", at, name)
		if r == nil {
			v.Addf(where, "must not be null")
			continue
		}
		v.Check(r.Type != "csi", where+".Type", "is not supported: Drover has no CSI: use a host volume")
		v.Check(r.Type == "host" || r.Type == "csi", where+".Type", "must be host, got %q", r.Type)
		v.Check(r.Source != "", where+".Source", "must be set")
	}
}

// validateVolumeMounts checks that each mount names a volume of the group and says where it goes.
func validateVolumeMounts(v *report, at string, g *TaskGroup, list []*VolumeMount) {
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
