package volumes

import (
	"iter"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/volume"
)

// Upsert applies the command and returns the volume as it is stored. Errors: NotFound for a node or a namespace that there is not,
// Conflict for a name that the node has, or a volume that is being deleted, Invalid for what cannot be changed.
func Upsert(txn *store.Txn, index uint64, c *command.UpsertHostVolume) (*volume.HostVolume, error) {
	if c.Volume == nil || c.Volume.ID == "" {
		return nil, drover.Errorf(drover.Invalid, "missing volume")
	}
	next := *c.Volume
	next.CreateIndex, next.CreateTime, next.State, next.StateDescription = index, c.Time, volume.HostVolumePending, ""
	next.ModifyIndex, next.ModifyTime, next.Wanted, next.Done, next.Allocations = index, c.Time, index, 0, nil
	n := txn.Node(next.NodeID)
	switch {
	case txn.Namespace(next.Namespace) == nil:
		return nil, drover.Errorf(drover.NotFound, "volume %q: nonexistent namespace %q", next.Name, next.Namespace)
	case n == nil:
		return nil, drover.Errorf(drover.NotFound, "volume %q: node %q not found", next.Name, next.NodeID)
	}
	if old := txn.HostVolume(next.ID); old != nil {
		if err := changeable(old, &next); err != nil {
			return nil, err
		}
		next.CreateIndex, next.CreateTime, next.State = old.CreateIndex, old.CreateTime, old.State
		next.CapacityBytes = old.CapacityBytes
		if !next.Registered {
			next.HostPath = old.HostPath
		}
	} else if Named(txn, n, next.Name) {
		return nil, drover.Errorf(drover.Conflict, "node %s has a volume %q already", n.ID, next.Name)
	}
	txn.PutHostVolume(&next)
	return &next, nil
}

// changeable returns an error unless next can take the place of old.
func changeable(old, next *volume.HostVolume) error {
	switch {
	case old.Namespace != next.Namespace:
		return NotFound(old.ID)
	case old.State == volume.HostVolumeDeleting:
		return drover.Errorf(drover.Conflict, "volume %s is being deleted", old.ID)
	}
	for _, f := range []struct{ field, old, next string }{
		{"Name", old.Name, next.Name},
		{"NodeID", old.NodeID, next.NodeID},
		{"NodePool", old.NodePool, next.NodePool},
		{"PluginID", old.PluginID, next.PluginID},
	} {
		if f.old != f.next {
			return drover.Errorf(drover.Invalid, "volume %s: %s cannot be changed from %q to %q", old.ID, f.field, f.old, f.next)
		}
	}
	if old.Registered != next.Registered {
		return drover.Errorf(drover.Invalid, "volume %s: one that was created cannot be registered, nor the other way round", old.ID)
	}
	if next.RequestedCapacityMaxBytes > 0 && next.RequestedCapacityMaxBytes < old.CapacityBytes {
		return drover.Errorf(drover.Invalid, "volume %s: capacity_max (%d) is less than the %d bytes that it has",
			old.ID, next.RequestedCapacityMaxBytes, old.CapacityBytes)
	}
	return nil
}

// Reader is the state, or a transaction of it.
type Reader interface {
	HostVolumesOn(nodeID string) iter.Seq[*volume.HostVolume]
}

// Named reports whether the node has a volume of the name, or is to have one.
func Named(r Reader, n *drover.Node, name string) bool {
	if n.HostVolumes[name] != nil {
		return true
	}
	for v := range r.HostVolumesOn(n.ID) {
		if v.Name == name {
			return true
		}
	}
	return false
}

// Delete applies the command. It returns the volume as it was, or as it is until its node has deleted it, and the node where that is
// another one now. Errors: NotFound, Conflict.
func Delete(txn *store.Txn, index uint64, c *command.DeleteHostVolume) (*volume.HostVolume, *drover.Node, error) {
	old := txn.HostVolume(c.ID)
	if old == nil || old.Namespace != c.Namespace {
		return nil, nil, NotFound(c.ID)
	}
	if ids := Mounting(txn, old); len(ids) > 0 {
		return nil, nil, drover.Errorf(drover.Conflict, "volume %s in use by allocations: %s", old.ID, strings.Join(ids, ", "))
	}
	next := *old
	next.ModifyIndex, next.ModifyTime, next.Wanted = index, c.Time, index
	next.State, next.StateDescription = volume.HostVolumeDeleting, ""
	n := txn.Node(old.NodeID)
	if c.Force || n == nil {
		txn.DeleteHostVolume(old)
	} else {
		txn.PutHostVolume(&next)
	}
	if n == nil || n.HostVolumes[old.Name] == nil || n.HostVolumes[old.Name].ID != old.ID {
		return &next, nil, nil
	}
	without := *n
	without.HostVolumes, without.ModifyIndex = map[string]*drover.HostVolumeInfo{}, index
	for name, have := range n.HostVolumes {
		if name != old.Name {
			without.HostVolumes[name] = have
		}
	}
	return &next, &without, nil
}

// Mounting returns the ids of the allocations that mount the volume and have not ended, at most a few, in order.
func Mounting(r interface {
	UnfinishedByNode(nodeID string) iter.Seq[*drover.Allocation]
}, v *volume.HostVolume,
) (ids []string) {
	const several = 10
	for a := range r.UnfinishedByNode(v.NodeID) {
		if len(ids) < several && !a.ClientTerminal() && v.MountedBy(a) {
			ids = append(ids, a.ID)
		}
	}
	return ids
}

// NotFound says that there is no volume of the id.
func NotFound(id string) error {
	return drover.Errorf(drover.NotFound, "host volume not found: %q", id)
}
