package insight

import (
	"cmp"
	"fmt"
	"time"

	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/volume"
)

// volumeSlow is how long a node may take to make or delete a volume before somebody should look.
const volumeSlow = 2 * time.Minute

// shelf counts volumes.
type shelf struct{ all, ready int }

func (s *shelf) plus(one *shelf) {
	s.all += one.all
	s.ready += one.ready
}

// String is "" if there are none: most clusters have none.
func (s *shelf) String() string {
	if s.all == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %s ready.", s.ready, of(s.all, "host volume", "host volumes"))
}

// judgeVolumes: which volumes cannot be mounted, and for which their nodes take long.
func (r *Report) judgeVolumes(s State) {
	for v := range s.HostVolumes("*", "") {
		shelf := in(r.volumes, v.Namespace)
		shelf.all++
		c := cluster.Concern{
			Area: cluster.AreaVolumes, State: cluster.Weak, Subject: v.ID, Namespace: v.Namespace, Name: v.Name,
			Next: "drover volume status -namespace " + v.Namespace + " " + v.ID,
		}
		if v.ModifyTime > 0 {
			c.Since = time.Unix(0, v.ModifyTime).UTC()
		}
		slow := r.at.Sub(c.Since) >= volumeSlow || v.StateDescription != ""
		switch {
		case v.State == volume.HostVolumeReady:
			shelf.ready++
			continue
		case v.State == volume.HostVolumePending && slow:
			c.Code, c.Says = cluster.VolumePending, "has not been made"
		case v.State == volume.HostVolumeDeleting && slow:
			c.Code, c.Says = cluster.VolumeDeleting, "has not been deleted"
		case v.State == volume.HostVolumeUnavailable:
			c.Code, c.Says = cluster.VolumeUnavailable, "cannot be mounted"
		default:
			continue
		}
		c.Says = fmt.Sprintf("volume %s %s: %s", v.Name, c.Says, cmp.Or(v.StateDescription, "node "+v.NodeID+" has not answered"))
		r.add(c)
	}
}
