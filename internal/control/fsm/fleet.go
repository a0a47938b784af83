package fsm

import (
	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/machines"
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
		machines.Name(e.txn, c.Tag)
		return nil, nil
	case *command.PutFleetPools:
		return nil, e.putFleetPools(c.Pools)
	case *command.ApplyFleetPools:
		return nil, e.applyFleetPools(c)
	case *command.DeleteFleetPools:
		e.deleteFleetPools(c)
		return nil, nil
	case *command.UpdateFleet:
		for _, i := range machines.Update(e.txn, e.index, c) {
			e.instanceEvent(i)
		}
		return nil, nil
	case *command.BindFleetNode:
		return nil, machines.Bind(e.txn, e.index, c)
	}
	return nil, drover.Errorf(drover.Internal, "command %s has no apply function", c.Kind())
}

// putFleetPools stores all the pools or none, and makes the node pools that their machines join. Errors: Invalid.
func (e *entry) putFleetPools(pools []*fleet.Pool) error {
	stored, err := machines.PutPools(e.txn, e.index, pools)
	for _, p := range stored {
		e.ensurePool(p.Policy.NodePool)
		e.told = append(e.told, e.event(drover.TopicFleetPool, "FleetPoolUpserted", p.Name, "", []string{p.Policy.NodePool}, "FleetPool", p))
	}
	return err
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

// instanceEvent tells of a new state: its type is "Instance" and the state's word, as in InstanceActive.
func (e *entry) instanceEvent(i *fleet.InstanceRecord) {
	word := i.State.String()
	kind := "Instance" + string(word[0]-'a'+'A') + word[1:]
	e.told = append(e.told, e.event(drover.TopicInstance, kind, i.ID, "", []string{i.Pool, i.NodeID}, "Instance", i))
}
