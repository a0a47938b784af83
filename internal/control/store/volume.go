package store

import (
	"iter"

	"github.com/hashicorp/go-memdb"

	"github.com/drover-project/drover/internal/tables"
	"github.com/drover-project/drover/volume"
)

// indexNode finds the volumes of a node, indexVolume the claims of a volume.
const (
	indexNode   = "node"
	indexVolume = "volume"
)

// volumeTables are those of volumes.
func volumeTables() []*memdb.TableSchema {
	return []*memdb.TableSchema{
		table(tables.HostVolumes, func(v *volume.HostVolume) string { return term(v.ID) },
			index(indexNode, func(v *volume.HostVolume) string { return term(v.NodeID) + term(v.ID) })),
		table(tables.VolumeClaims, func(c *volume.HostVolumeClaim) string { return term(c.ID) },
			index(indexJob, func(c *volume.HostVolumeClaim) string {
				return jobPrefix(c.Namespace, c.JobID) + term(c.TaskGroupName) + term(c.ID)
			}),
			index(indexVolume, func(c *volume.HostVolumeClaim) string { return term(c.VolumeID) + term(c.ID) })),
	}
}

// HostVolume returns the volume or nil.
func (r *reader) HostVolume(id string) *volume.HostVolume {
	return get[volume.HostVolume](r, tables.HostVolumes, term(id))
}

// HostVolumes yields the namespace's volumes ("*" = of all) whose ids begin with prefix, ordered by id.
func (r *reader) HostVolumes(namespace, prefix string) iter.Seq[*volume.HostVolume] {
	return filter(scan[volume.HostVolume](r, tables.HostVolumes, indexID, prefix),
		func(v *volume.HostVolume) bool { return namespace == "*" || v.Namespace == namespace })
}

// HostVolumesOn yields the volumes that are on the node or are to be, ordered by id.
func (r *reader) HostVolumesOn(nodeID string) iter.Seq[*volume.HostVolume] {
	return scan[volume.HostVolume](r, tables.HostVolumes, indexNode, term(nodeID))
}

// PutHostVolume stores the volume, and has its node hear of it if something else is wanted of that.
func (t *Txn) PutHostVolume(v *volume.HostVolume) {
	if old := t.HostVolume(v.ID); old == nil || old.Wanted != v.Wanted {
		t.wantVolumes(v.NodeID)
	}
	t.put(tables.HostVolumes, v.ID, v)
}

// DeleteHostVolume forgets the volume, and has its node hear of that.
func (t *Txn) DeleteHostVolume(v *volume.HostVolume) {
	t.wantVolumes(v.NodeID)
	t.drop(tables.HostVolumes, v.ID, v)
}

// RestoreHostVolume stores a volume.
func (t *Txn) RestoreHostVolume(v *volume.HostVolume) {
	t.insert(tables.HostVolumes, v)
	u := t.usageOf(v.NodeID)
	u.Changed = max(u.Changed, v.Wanted)
}

// wantVolumes notes that something else is wanted of the node.
func (t *Txn) wantVolumes(nodeID string) {
	u := t.usageOf(nodeID)
	u.Changed = max(u.Changed, t.index)
	t.touchNodeAllocs(nodeID)
}

// VolumeClaim returns the claim or nil.
func (r *reader) VolumeClaim(id string) *volume.HostVolumeClaim {
	return get[volume.HostVolumeClaim](r, tables.VolumeClaims, term(id))
}

// VolumeClaims yields the namespace's claims ("*" = of all) whose ids begin with prefix, ordered by id.
func (r *reader) VolumeClaims(namespace, prefix string) iter.Seq[*volume.HostVolumeClaim] {
	return byNamespace(r, tables.VolumeClaims, namespace, prefix, func(c *volume.HostVolumeClaim) string { return c.Namespace })
}

// VolumeClaimsOf yields the claims of a job's group ("" = of all), ordered by id within a group.
func (r *reader) VolumeClaimsOf(namespace, jobID, group string) iter.Seq[*volume.HostVolumeClaim] {
	prefix := jobPrefix(namespace, jobID)
	if group != "" {
		prefix += term(group)
	}
	return scan[volume.HostVolumeClaim](r, tables.VolumeClaims, indexJob, prefix)
}

// VolumeClaimsOn yields the claims of a volume, ordered by id.
func (r *reader) VolumeClaimsOn(volumeID string) iter.Seq[*volume.HostVolumeClaim] {
	return scan[volume.HostVolumeClaim](r, tables.VolumeClaims, indexVolume, term(volumeID))
}

// PutVolumeClaim stores the claim.
func (t *Txn) PutVolumeClaim(c *volume.HostVolumeClaim) { t.put(tables.VolumeClaims, c.ID, c) }

// DeleteVolumeClaim forgets the claim.
func (t *Txn) DeleteVolumeClaim(c *volume.HostVolumeClaim) { t.drop(tables.VolumeClaims, c.ID, c) }

// RestoreVolumeClaim stores a claim.
func (t *Txn) RestoreVolumeClaim(c *volume.HostVolumeClaim) { t.insert(tables.VolumeClaims, c) }
