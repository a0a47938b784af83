package machines

import (
	"slices"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/store"
)

// Name makes the machines with the tag ours, if there is a fleet.
func Name(txn *store.Txn, tag string) {
	who := txn.FleetIdentity()
	if who == nil || tag == "" {
		return
	}
	next := who.Called(tag)
	if who.Owner == "" {
		next = *who
		next.Owner = tag
	}
	txn.PutFleetIdentity(&next)
	inherit(txn, &next)
}

// Keep has the fleet go on as who it was before an archive's state came in its place. Machines of the archive that are of another
// cluster, which may go on, too, are marked so.
func Keep(txn *store.Txn, present *fleet.Identity) {
	archived := txn.FleetIdentity()
	next := fleet.Restored(present, archived)
	if next == nil {
		return
	}
	txn.PutFleetIdentity(next)
	if archived != nil && !next.Owns(archived.Owner) {
		for _, i := range slices.Collect(txn.FleetInstances("")) {
			if i.Of == "" && i.State != fleet.InstanceGone {
				of := *i
				of.Of = archived.Owner
				txn.PutFleetInstance(&of)
			}
		}
	}
	inherit(txn, next)
}

// inherit unmarks machines that turned out to be ours.
func inherit(txn *store.Txn, who *fleet.Identity) {
	for _, i := range slices.Collect(txn.FleetInstances("")) {
		if who.Owns(i.Of) {
			ours := *i
			ours.Of = ""
			txn.PutFleetInstance(&ours)
		}
	}
}

// PutPools stores all the pools or none, and returns them as stored. The caller makes the node pools that their machines join. Errors:
// Invalid.
func PutPools(txn *store.Txn, index uint64, pools []*fleet.Pool) (stored []*fleet.Pool, err error) {
	for _, p := range pools {
		if p == nil || p.Name == "" || p.Policy == nil || p.Policy.Name != p.Name {
			return nil, drover.Errorf(drover.Invalid, "fleet pool: it must have a name, and a policy of that name")
		}
	}
	for _, p := range pools {
		next := *p
		next.CreateIndex, next.ModifyIndex = index, index
		if old := txn.FleetPool(p.Name); old != nil {
			next.CreateIndex = old.CreateIndex
		}
		txn.PutFleetPool(&next)
		stored = append(stored, &next)
	}
	return stored, nil
}

// Update stores what the fleet's loop observed and decided. The loop works on an older state, so two fields are
// not taken back: the amount charged never decreases, and a bound node stays bound; nor is whose machine it is. It returns the
// machines with a new state or behavior.
func Update(txn *store.Txn, index uint64, c *command.UpdateFleet) (changed []*fleet.InstanceRecord) {
	who := txn.FleetIdentity()
	for _, i := range c.Put {
		if i == nil || i.ID == "" {
			continue
		}
		next := *i
		next.CreateIndex, next.ModifyIndex = index, index
		if who != nil && who.Owns(next.Of) {
			next.Of = ""
		}
		old := txn.FleetInstance(i.ID)
		if old != nil {
			next.CreateIndex = old.CreateIndex
			next.Charged = max(next.Charged, old.Charged)
			if old.NodeID != "" {
				next.NodeID = old.NodeID
			}
		}
		txn.PutFleetInstance(&next)
		if old == nil || old.State != next.State || old.Behavior != next.Behavior {
			changed = append(changed, &next)
		}
	}
	for _, id := range c.Forget {
		if i := txn.FleetInstance(id); i != nil {
			txn.DeleteFleetInstance(i)
		}
	}
	for _, cost := range c.Costs {
		txn.AddFleetCost(cost)
	}
	if c.Learned != nil {
		txn.PutFleetMemory(c.Learned)
	}
	return changed
}

// Bind ties an instance to the node that used its token. One token serves one node; the same node may come
// again. Errors: NotFound for an unknown instance or one that is gone, Conflict if another node used the token.
func Bind(txn *store.Txn, index uint64, c *command.BindFleetNode) error {
	old := txn.FleetInstance(c.Instance)
	switch {
	case old == nil || old.State == fleet.InstanceGone:
		return drover.Errorf(drover.NotFound, "the fleet has no instance %q", c.Instance)
	case old.NodeID == c.Node:
		return nil
	case old.NodeID != "":
		return drover.Errorf(drover.Conflict, "the token of instance %s was used by node %s", c.Instance, old.NodeID)
	}
	next := *old
	next.NodeID, next.ModifyIndex = c.Node, index
	txn.PutFleetInstance(&next)
	return nil
}
