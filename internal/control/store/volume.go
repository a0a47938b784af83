package store

import (
	"iter"

	"github.com/hashicorp/go-memdb"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/tables"
)

// indexNode finds the volumes of a node.
const indexNode = "node"

// volumeTables are those of volumes.
func volumeTables() []*memdb.TableSchema {
	return []*memdb.TableSchema{
		table(tables.HostVolumes, func(v *drover.HostVolume) string { return term(v.ID) },
			index(indexNode, func(v *drover.HostVolume) string { return term(v.NodeID) + term(v.ID) })),
	}
}

// HostVolume returns the volume or nil.
func (r *reader) HostVolume(id string) *drover.HostVolume {
	return get[drover.HostVolume](r, tables.HostVolumes, term(id))
}

// HostVolumes yields the namespace's volumes ("*" = of all) whose ids begin with prefix, ordered by id.
func (r *reader) HostVolumes(namespace, prefix string) iter.Seq[*drover.HostVolume] {
	return filter(scan[drover.HostVolume](r, tables.HostVolumes, indexID, prefix),
		func(v *drover.HostVolume) bool { return namespace == "*" || v.Namespace == namespace })
}

// HostVolumesOn yields the volumes that are on the node or are to be, ordered by id.
func (r *reader) HostVolumesOn(nodeID string) iter.Seq[*drover.HostVolume] {
	return scan[drover.HostVolume](r, tables.HostVolumes, indexNode, term(nodeID))
}

// PutHostVolume stores the volume, and has its node hear of it if something else is wanted of that.
func (t *Txn) PutHostVolume(v *drover.HostVolume) {
	if old := t.HostVolume(v.ID); old == nil || old.Wanted != v.Wanted {
		t.wantVolumes(v.NodeID)
	}
	t.put(tables.HostVolumes, v.ID, v)
}

// DeleteHostVolume forgets the volume, and has its node hear of that.
func (t *Txn) DeleteHostVolume(v *drover.HostVolume) {
	t.wantVolumes(v.NodeID)
	t.drop(tables.HostVolumes, v.ID, v)
}

// RestoreHostVolume stores a volume.
func (t *Txn) RestoreHostVolume(v *drover.HostVolume) {
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
