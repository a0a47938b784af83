package fsm

import (
	"slices"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/control/command"
)

// applyFleet dispatches the fleet's commands. It is the last of the three dispatchers: a command that it does not know
// is a defect of this program, and the error is Internal. The identity is made once; it only gets further names.
func (e *entry) applyFleet(c command.Command) (any, error) {
	switch c := c.(type) {
	case *command.InitFleet:
		if e.txn.FleetIdentity() == nil {
			e.txn.PutFleetIdentity(&c.Identity)
		}
		return nil, nil
	case *command.NameFleet:
		e.nameFleet(c.Tag)
		return nil, nil
	case *command.PutFleetPools:
		return nil, e.putFleetPools(c.Pools)
	case *command.ApplyFleetPools:
		return nil, e.applyFleetPools(c)
	case *command.DeleteFleetPools:
		e.deleteFleetPools(c)
		return nil, nil
	case *command.UpdateFleet:
		e.updateFleet(c)
		return nil, nil
	case *command.BindFleetNode:
		return nil, e.bindFleetNode(c)
	}
	return nil, drover.Errorf(drover.Internal, "command %s has no apply function", c.Kind())
}

// nameFleet makes the machines with the tag ours, if there is a fleet.
func (e *entry) nameFleet(tag string) {
	who := e.txn.FleetIdentity()
	if who == nil || tag == "" {
		return
	}
	next := who.Called(tag)
	if who.Owner == "" {
		next = *who
		next.Owner = tag
	}
	e.txn.PutFleetIdentity(&next)
	e.inheritMachines(&next)
}

// keepFleet has the fleet go on as who it was before an archive's state came in its place. Machines of the archive that are of another
// cluster, which may go on, too, are marked so.
func (e *entry) keepFleet(present *fleet.Identity) {
	archived := e.txn.FleetIdentity()
	next := fleet.Restored(present, archived)
	if next == nil {
		return
	}
	e.txn.PutFleetIdentity(next)
	if archived != nil && !next.Owns(archived.Owner) {
		for _, i := range slices.Collect(e.txn.FleetInstances("")) {
			if i.Of == "" && i.State != fleet.InstanceGone {
				of := *i
				of.Of = archived.Owner
				e.txn.PutFleetInstance(&of)
			}
		}
	}
	e.inheritMachines(next)
}

// inheritMachines unmarks machines that turned out to be ours.
func (e *entry) inheritMachines(who *fleet.Identity) {
	for _, i := range slices.Collect(e.txn.FleetInstances("")) {
		if who.Owns(i.Of) {
			ours := *i
			ours.Of = ""
			e.txn.PutFleetInstance(&ours)
		}
	}
}

// putFleetPools stores all the pools or none, and makes the node pools that their machines join. Errors: Invalid.
func (e *entry) putFleetPools(pools []*fleet.Pool) error {
	for _, p := range pools {
		if p == nil || p.Name == "" || p.Policy == nil || p.Policy.Name != p.Name {
			return drover.Errorf(drover.Invalid, "fleet pool: it must have a name, and a policy of that name")
		}
	}
	for _, p := range pools {
		next := *p
		next.CreateIndex, next.ModifyIndex = e.index, e.index
		if old := e.txn.FleetPool(p.Name); old != nil {
			next.CreateIndex = old.CreateIndex
		}
		e.ensurePool(p.Policy.NodePool)
		e.txn.PutFleetPool(&next)
		e.told = append(e.told, e.event(drover.TopicFleetPool, "FleetPoolUpserted", p.Name, "", []string{p.Policy.NodePool}, "FleetPool", &next))
	}
	return nil
}

// applyFleetPools stores the pools unless some changed since the proposer looked. Errors: Conflict, Invalid.
func (e *entry) applyFleetPools(c *command.ApplyFleetPools) error {
	if now := fleet.PoolsVersion(e.txn.FleetPools()); now != c.Version {
		return drover.Errorf(drover.Conflict, "Version: the fleet's pools changed meanwhile, they are at version %d and not %d: look again",
			now, c.Version)
	}
	return e.putFleetPools(c.Pools)
}

// deleteFleetPools forgets pools, skipping unknown ones. The records of their instances stay until UpdateFleet forgets
// them.
func (e *entry) deleteFleetPools(c *command.DeleteFleetPools) {
	for _, name := range c.Names {
		if p := e.txn.FleetPool(name); p != nil {
			e.txn.DeleteFleetPool(p)
			e.told = append(e.told, e.event(drover.TopicFleetPool, "FleetPoolDeleted", p.Name, "", []string{p.Policy.NodePool}, "FleetPool", p))
		}
	}
}

// updateFleet stores what the fleet's loop observed and decided. The loop works on an older state, so two fields are
// not taken back: the amount charged never decreases, and a bound node stays bound; nor is whose machine it is. Only a new state or
// behavior makes an event.
func (e *entry) updateFleet(c *command.UpdateFleet) {
	who := e.txn.FleetIdentity()
	for _, i := range c.Put {
		if i == nil || i.ID == "" {
			continue
		}
		next := *i
		next.CreateIndex, next.ModifyIndex = e.index, e.index
		if who != nil && who.Owns(next.Of) {
			next.Of = ""
		}
		old := e.txn.FleetInstance(i.ID)
		if old != nil {
			next.CreateIndex = old.CreateIndex
			next.Charged = max(next.Charged, old.Charged)
			if old.NodeID != "" {
				next.NodeID = old.NodeID
			}
		}
		e.txn.PutFleetInstance(&next)
		if old == nil || old.State != next.State || old.Behavior != next.Behavior {
			e.instanceEvent(&next)
		}
	}
	for _, id := range c.Forget {
		if i := e.txn.FleetInstance(id); i != nil {
			e.txn.DeleteFleetInstance(i)
		}
	}
	for _, cost := range c.Costs {
		e.txn.AddFleetCost(cost)
	}
	if c.Learned != nil {
		e.txn.PutFleetMemory(c.Learned)
	}
}

// bindFleetNode ties an instance to the node that used its token. One token serves one node; the same node may come
// again. Errors: NotFound for an unknown instance or one that is gone, Conflict if another node used the token.
func (e *entry) bindFleetNode(c *command.BindFleetNode) error {
	old := e.txn.FleetInstance(c.Instance)
	switch {
	case old == nil || old.State == fleet.InstanceGone:
		return drover.Errorf(drover.NotFound, "the fleet has no instance %q", c.Instance)
	case old.NodeID == c.Node:
		return nil
	case old.NodeID != "":
		return drover.Errorf(drover.Conflict, "the token of instance %s was used by node %s", c.Instance, old.NodeID)
	}
	next := *old
	next.NodeID, next.ModifyIndex = c.Node, e.index
	e.txn.PutFleetInstance(&next)
	return nil
}

// instanceEvent tells of a new state: its type is "Instance" and the state's word, as in InstanceActive.
func (e *entry) instanceEvent(i *fleet.InstanceRecord) {
	word := i.State.String()
	kind := "Instance" + string(word[0]-'a'+'A') + word[1:]
	e.told = append(e.told, e.event(drover.TopicInstance, kind, i.ID, "", []string{i.Pool, i.NodeID}, "Instance", i))
}
