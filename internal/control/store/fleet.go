package store

import (
	"iter"

	"github.com/hashicorp/go-memdb"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/tables"
)

// The fleet's tables.
const (
	tableFleetIdentity = "fleet_identity"
	tableFleetMemory   = "fleet_memory"
)

func fleetTables() []*memdb.TableSchema {
	return []*memdb.TableSchema{
		table(tables.FleetPools, func(p *fleet.Pool) string { return term(p.Name) }),
		table(tables.FleetInstances, func(i *fleet.InstanceRecord) string { return term(i.ID) }),
		table(tables.FleetCosts, func(c *fleet.Cost) string { return costKey(c) }),
		table(tableFleetMemory, func(m *fleet.Memory) string { return term(m.Provider) }),
		table(tableFleetIdentity, func(*fleet.Identity) string { return "identity" }),
	}
}

func costKey(c *fleet.Cost) string {
	return term(c.Day) + term(c.Pool) + term(c.Namespace) + term(c.Job)
}

// FleetIdentity returns who this Drover is to clouds, nil if it never was asked.
func (r *reader) FleetIdentity() *fleet.Identity {
	return get[fleet.Identity](r, tableFleetIdentity, "identity")
}

// FleetMemory returns what was learned of the provider's cloud, nil if nothing was.
func (r *reader) FleetMemory(provider string) *fleet.Memory {
	return get[fleet.Memory](r, tableFleetMemory, term(provider))
}

// FleetMemories yields what was learned of all clouds, by provider.
func (r *reader) FleetMemories() iter.Seq[*fleet.Memory] {
	return scan[fleet.Memory](r, tableFleetMemory, indexID, "")
}

// FleetPool returns the pool or nil.
func (r *reader) FleetPool(name string) *fleet.Pool {
	return get[fleet.Pool](r, tables.FleetPools, term(name))
}

// FleetPools yields all pools of the fleet by name.
func (r *reader) FleetPools() iter.Seq[*fleet.Pool] {
	return scan[fleet.Pool](r, tables.FleetPools, indexID, "")
}

// FleetInstance returns the machine or nil.
func (r *reader) FleetInstance(id string) *fleet.InstanceRecord {
	return get[fleet.InstanceRecord](r, tables.FleetInstances, term(id))
}

// FleetInstances yields the recorded machines whose ids begin with prefix, by id; those lately gone too.
func (r *reader) FleetInstances(prefix string) iter.Seq[*fleet.InstanceRecord] {
	return scan[fleet.InstanceRecord](r, tables.FleetInstances, indexID, prefix)
}

// FleetCosts yields the ledger's lines from a day on ("" = all), by day, pool, namespace and job.
func (r *reader) FleetCosts(from string) iter.Seq[*fleet.Cost] {
	return filter(scan[fleet.Cost](r, tables.FleetCosts, indexID, ""), func(c *fleet.Cost) bool { return c.Day >= from })
}

// PutFleetIdentity stores who this Drover is to clouds.
func (t *Txn) PutFleetIdentity(i *fleet.Identity) { t.insert(tableFleetIdentity, i) }

// PutFleetPool stores the pool.
func (t *Txn) PutFleetPool(p *fleet.Pool) { t.put(tables.FleetPools, p.Name, p) }

// DeleteFleetPool forgets the pool.
func (t *Txn) DeleteFleetPool(p *fleet.Pool) { t.drop(tables.FleetPools, p.Name, p) }

// PutFleetInstance stores the machine.
func (t *Txn) PutFleetInstance(i *fleet.InstanceRecord) { t.put(tables.FleetInstances, i.ID, i) }

// DeleteFleetInstance forgets the machine.
func (t *Txn) DeleteFleetInstance(i *fleet.InstanceRecord) { t.drop(tables.FleetInstances, i.ID, i) }

// AddFleetCost adds to the ledger's line of the day, pool and job.
func (t *Txn) AddFleetCost(c fleet.Cost) {
	if old := get[fleet.Cost](&t.reader, tables.FleetCosts, costKey(&c)); old != nil {
		c.Cost, c.Hours = c.Cost+old.Cost, c.Hours+old.Hours
	}
	t.insert(tables.FleetCosts, &c)
	t.touch(tables.FleetCosts, c.Day)
}

// PutFleetMemory stores what was learned of a provider's cloud.
func (t *Txn) PutFleetMemory(m *fleet.Memory) { t.insert(tableFleetMemory, m) }

// RestoreFleetIdentity stores who this Drover is to clouds.
func (t *Txn) RestoreFleetIdentity(i *fleet.Identity) { t.insert(tableFleetIdentity, i) }

// RestoreFleetPool stores a pool.
func (t *Txn) RestoreFleetPool(p *fleet.Pool) { t.insert(tables.FleetPools, p) }

// RestoreFleetInstance stores a machine.
func (t *Txn) RestoreFleetInstance(i *fleet.InstanceRecord) { t.insert(tables.FleetInstances, i) }

// RestoreFleetCost stores a line of the ledger.
func (t *Txn) RestoreFleetCost(c *fleet.Cost) { t.insert(tables.FleetCosts, c) }
