package fsm

import (
	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/volumes"
)

// upsertHostVolume asks a node for a volume.
func (e *entry) upsertHostVolume(c *command.UpsertHostVolume) (any, error) {
	v, err := volumes.Upsert(e.txn, e.index, c)
	if err != nil {
		return nil, err
	}
	e.tellVolume("HostVolumeRegistered", v)
	return v, nil
}

// deleteHostVolume has a node delete a volume.
func (e *entry) deleteHostVolume(c *command.DeleteHostVolume) (any, error) {
	v, n, err := volumes.Delete(e.txn, e.index, c)
	if err != nil {
		return nil, err
	}
	if n != nil {
		e.putNode(n)
	}
	if e.txn.HostVolume(c.ID) == nil {
		e.tellVolume("HostVolumeDeleted", v)
		return (*drover.HostVolume)(nil), nil
	}
	e.tellVolume("HostVolumeRegistered", v)
	return v, nil
}

// followVolumes leaves in the node's record, which is not stored yet, the volumes that can be mounted, and stores what it says of them.
func (e *entry) followVolumes(n *drover.Node, now int64) {
	var changes []volumes.Change
	n.HostVolumes, changes = volumes.Follow(e.txn, n)
	volumes.Apply(e.txn, e.index, now, changes)
	e.tellVolumes(changes)
}

func (e *entry) tellVolumes(changes []volumes.Change) {
	for _, c := range changes {
		kind := "NodeRegistration" // as Nomad's
		if c.Gone {
			kind = "HostVolumeDeleted"
		}
		e.tellVolume(kind, c.Now)
	}
}

// tellVolume tells of a volume.
func (e *entry) tellVolume(kind string, v *drover.HostVolume) {
	e.told = append(e.told, e.event(drover.TopicHostVolume, kind, v.ID, v.Namespace, []string{v.NodeID, v.Name, v.PluginID}, "Volume", v))
}
