package volumes

import (
	"maps"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/volume"
)

// Change is a volume that is another one by what its node says.
type Change struct {
	Now  *volume.HostVolume
	Gone bool // the node has deleted it
}

// Follow says what follows from a node's record for its volumes: which of those in the record can be mounted, and which change in the
// state. Volumes that nobody asked the node for are not mounted, whatever it says. A node that is down has none that can be.
func Follow(r Reader, n *drover.Node) (offered map[string]*drover.HostVolumeInfo, changes []Change) {
	var own map[string]*drover.HostVolumeInfo // a copy as soon as something is not as the node says
	drop := func(name string) {
		if own == nil {
			own = maps.Clone(n.HostVolumes)
		}
		delete(own, name)
	}
	wanted := map[string]string{} // ids by name
	for v := range r.HostVolumesOn(n.ID) {
		wanted[v.Name] = v.ID
		have := n.HostVolumes[v.Name]
		if have != nil && (have.ID != v.ID || have.Report == nil) {
			have = nil
		}
		c := judge(v, have, n.Status == drover.NodeStatusDown)
		if c.Gone || c.Now != v {
			changes = append(changes, c)
		}
		// What a node has that is down counts again with its next heartbeat.
		keep := c.Now.State == volume.HostVolumeReady || n.Status == drover.NodeStatusDown && c.Now.State == volume.HostVolumeUnavailable
		if have != nil && (!keep || !have.OfferedTo(v.Namespace)) {
			drop(v.Name)
		}
	}
	for name, have := range n.HostVolumes {
		if have == nil || have.ID != "" && (wanted[name] != have.ID || have.Report == nil) {
			drop(name)
		}
	}
	if own == nil {
		own = n.HostVolumes
	}
	return own, changes
}

// judge returns the volume as its node's word makes it; the same one if it changes nothing. have is nil if the node does not name it.
func judge(v *volume.HostVolume, have *drover.HostVolumeInfo, down bool) Change {
	next := *v
	report, heard := &drover.HostVolumeReport{}, false
	if have != nil && have.Report != nil {
		report, heard = have.Report, have.Report.Wanted == v.Wanted
	}
	if heard {
		next.Done = v.Wanted
	}
	switch {
	case down && v.State == volume.HostVolumeReady:
		next.State, next.StateDescription = volume.HostVolumeUnavailable, "its node is down"
	case down:
	case heard && v.State == volume.HostVolumeDeleting && report.Gone:
		return Change{v, true}
	case heard && report.Failure != "":
		next.StateDescription = report.Failure
		if v.State != volume.HostVolumePending {
			next.State = volume.HostVolumeUnavailable
		}
	case v.State == volume.HostVolumeDeleting || v.State == volume.HostVolumePending && !heard:
	case have == nil || !have.OfferedTo(v.Namespace):
		next.State, next.StateDescription = volume.HostVolumeUnavailable, "its node does not have it"
	default:
		next.State, next.StateDescription = volume.HostVolumeReady, ""
		next.HostPath, next.CapacityBytes = have.Path, report.CapacityBytes
	}
	if same(v, &next) {
		return Change{Now: v}
	}
	return Change{Now: &next}
}

// same compares what a node's word can change.
func same(v, w *volume.HostVolume) bool {
	return v.State == w.State && v.StateDescription == w.StateDescription && v.HostPath == w.HostPath &&
		v.CapacityBytes == w.CapacityBytes && v.Done == w.Done
}

// Apply stores what follows from a node's record. now is in unix ns; 0 = it is not known.
func Apply(txn *store.Txn, index uint64, now int64, changes []Change) {
	for _, c := range changes {
		if c.Gone {
			txn.DeleteHostVolume(c.Now)
			continue
		}
		c.Now.ModifyIndex, c.Now.ModifyTime = index, max(c.Now.ModifyTime, now)
		txn.PutHostVolume(c.Now)
	}
}

// Lost notes that a node was forgotten.
func Lost(txn *store.Txn, index uint64, nodeID string) (changes []Change) {
	_, changes = Follow(txn, &drover.Node{ID: nodeID, Status: drover.NodeStatusDown})
	Apply(txn, index, 0, changes)
	return changes
}
