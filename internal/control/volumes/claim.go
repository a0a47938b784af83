package volumes

import (
	"maps"
	"slices"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/volume"
)

// Claim stores the claims of an allocation's sticky volumes, and returns those that are another now: it has the volume itself, or instead
// of the allocation that it replaces. Volumes of the node's configuration are not claimed, nor are those of system jobs, whose
// allocations have one name and stay on their nodes. The ids follow from what is claimed, so that all servers have the same.
func Claim(txn *store.Txn, index uint64, a *drover.Allocation) (claims []*volume.HostVolumeClaim) {
	if a.Job == nil || a.Job.Type == drover.JobTypeSystem || a.Job.Type == drover.JobTypeSysBatch {
		return nil
	}
	g, n := a.Job.Group(a.TaskGroup), txn.Node(a.NodeID)
	if g == nil || n == nil || len(g.Volumes) == 0 || txn.Job(a.Namespace, a.JobID) == nil { // a purged job's claims would stay
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(g.Volumes)) {
		r := g.Volumes[name]
		if r == nil || !r.Sticky {
			continue
		}
		source := r.SourceOf(a.Index())
		have := n.HostVolumes[source]
		if have == nil || have.ID == "" {
			continue
		}
		c := &volume.HostVolumeClaim{
			ID:        id.Named(strings.Join([]string{"claim", a.Namespace, a.JobID, a.TaskGroup, a.Name, source}, "\x00")),
			Namespace: a.Namespace, JobID: a.JobID, TaskGroupName: a.TaskGroup, AllocID: a.ID, AllocName: a.Name,
			VolumeID: have.ID, VolumeName: source, CreateIndex: index, ModifyIndex: index,
		}
		if old := txn.VolumeClaim(c.ID); old != nil {
			c.CreateIndex = old.CreateIndex
		}
		txn.PutVolumeClaim(c)
		claims = append(claims, c)
	}
	return claims
}

// ClaimNotFound says that there is no claim of the id.
func ClaimNotFound(id string) error {
	return drover.Errorf(drover.NotFound, "volume claim not found: %q", id)
}
