package fsm

import (
	"fmt"
	"slices"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/trigger"
	"github.com/drover-project/drover/internal/control/volumes"
	"github.com/drover-project/drover/volume"
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
		e.releaseVolume(c.ID, c.Time)
		e.tellVolume("HostVolumeDeleted", v)
		return (*volume.HostVolume)(nil), nil
	}
	e.tellVolume("HostVolumeRegistered", v)
	return v, nil
}

// followVolumes leaves in the node's record, which is not stored yet, the volumes that can be mounted, and stores what it says of them.
func (e *entry) followVolumes(n *drover.Node, now int64) {
	var changes []volumes.Change
	n.HostVolumes, changes = volumes.Follow(e.txn, n)
	volumes.Apply(e.txn, e.index, now, changes)
	e.tellVolumes(changes, now)
}

func (e *entry) tellVolumes(changes []volumes.Change, now int64) {
	for _, c := range changes {
		kind := "NodeRegistration" // as Nomad's
		if c.Gone {
			kind = "HostVolumeDeleted"
			e.releaseVolume(c.Now.ID, now)
		}
		e.tellVolume(kind, c.Now)
	}
}

// tellVolume tells of a volume.
func (e *entry) tellVolume(kind string, v *volume.HostVolume) {
	e.told = append(e.told, e.event(drover.TopicHostVolume, kind, v.ID, v.Namespace, []string{v.NodeID, v.Name, v.PluginID}, "Volume", v))
}

// claimVolumes has a new allocation claim its sticky volumes, for itself and those that replace it.
func (e *entry) claimVolumes(a *drover.Allocation) {
	if cluster.VersionOf(e.txn.Cluster()) < 3 { // older servers apply it without; they have no volumes that could be claimed
		return
	}
	for _, c := range volumes.Claim(e.txn, e.index, a) {
		e.tellClaim("HostVolumeClaimed", c)
	}
}

// deleteVolumeClaim forgets a claim.
func (e *entry) deleteVolumeClaim(c *command.DeleteVolumeClaim) error {
	claim := e.txn.VolumeClaim(c.ID)
	if claim == nil || claim.Namespace != c.Namespace {
		return volumes.ClaimNotFound(c.ID)
	}
	e.dropClaim(claim)
	e.lookFor(claim, c.Time)
	return nil
}

// releaseVolume forgets the claims of a volume that is gone. now is in unix ns.
func (e *entry) releaseVolume(id string, now int64) {
	for _, c := range slices.Collect(e.txn.VolumeClaimsOn(id)) {
		e.dropClaim(c)
		e.lookFor(c, now)
	}
}

func (e *entry) dropClaim(c *volume.HostVolumeClaim) {
	e.txn.DeleteVolumeClaim(c)
	e.tellClaim("HostVolumeClaimDeleted", c)
}

// lookFor has the job of a claim that was forgotten looked at: it may wait for the volume. The evaluation's id follows from the entry.
func (e *entry) lookFor(c *volume.HostVolumeClaim, now int64) {
	if j := e.txn.Job(c.Namespace, c.JobID); j != nil && !j.Stopped() {
		m := trigger.Maker{IDs: late(fmt.Sprintf("%d claim %s", e.index, c.ID)), Now: now}
		e.putEval(*m.Job(j, drover.TriggerNodeUpdate))
	}
}

// tellClaim tells of a claim.
func (e *entry) tellClaim(kind string, c *volume.HostVolumeClaim) {
	e.told = append(e.told,
		e.event(drover.TopicVolumeClaim, kind, c.ID, c.Namespace, []string{c.JobID, c.AllocID, c.VolumeID, c.VolumeName}, "Claim", c))
}
