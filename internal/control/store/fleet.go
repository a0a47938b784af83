package store

import (
	"iter"

	"github.com/hashicorp/go-memdb"

	"github.com/drover-project/drover"
)

// The fleet's tables.
const (
	TableFleetPools     = "fleet_pools"
	TableFleetInstances = "fleet_instances"
	TableFleetCosts     = "fleet_costs"
	tableFleetIdentity  = "fleet_identity"
	tableFleetMemory    = "fleet_memory"
)

func fleetTables() []*memdb.TableSchema {
	return []*memdb.TableSchema{
		table(TableFleetPools, func(p *drover.FleetPool) string { return term(p.Name) }),
		table(TableFleetInstances, func(i *drover.FleetInstance) string { return term(i.ID) }),
		table(TableFleetCosts, func(c *drover.FleetCost) string { return costKey(c) }),
		table(tableFleetMemory, func(m *drover.FleetMemory) string { return term(m.Provider) }),
		table(tableFleetIdentity, func(*drover.FleetIdentity) string { return "identity" }),
	}
}

func costKey(c *drover.FleetCost) string {
	return term(c.Day) + term(c.Pool) + term(c.Namespace) + term(c.Job)
}

// FleetIdentity returns who this Drover is to clouds, nil if it never was asked.
func (r *reader) FleetIdentity() *drover.FleetIdentity {
	return get[drover.FleetIdentity](r, tableFleetIdentity, "identity")
}

// FleetMemory returns what was learned of the provider's cloud, nil if nothing was.
func (r *reader) FleetMemory(provider string) *drover.FleetMemory {
	return get[drover.FleetMemory](r, tableFleetMemory, term(provider))
}

// FleetMemories yields what was learned of all clouds, by provider.
func (r *reader) FleetMemories() iter.Seq[*drover.FleetMemory] {
	return scan[drover.FleetMemory](r, tableFleetMemory, indexID, "")
}

// FleetPool returns the pool or nil.
func (r *reader) FleetPool(name string) *drover.FleetPool {
	return get[drover.FleetPool](r, TableFleetPools, term(name))
}

// FleetPools yields all pools of the fleet by name.
func (r *reader) FleetPools() iter.Seq[*drover.FleetPool] {
	return scan[drover.FleetPool](r, TableFleetPools, indexID, "")
}

// FleetInstance returns the machine or nil.
func (r *reader) FleetInstance(id string) *drover.FleetInstance {
	return get[drover.FleetInstance](r, TableFleetInstances, term(id))
}

// FleetInstances yields the recorded machines whose ids begin with prefix, by id; those lately gone too.
func (r *reader) FleetInstances(prefix string) iter.Seq[*drover.FleetInstance] {
	return scan[drover.FleetInstance](r, TableFleetInstances, indexID, prefix)
}

// FleetCosts yields the ledger's lines from a day on ("" = all), by day, pool, namespace and job.
func (r *reader) FleetCosts(from string) iter.Seq[*drover.FleetCost] {
	return filter(scan[drover.FleetCost](r, TableFleetCosts, indexID, ""), func(c *drover.FleetCost) bool { return c.Day >= from })
}

// PutFleetIdentity stores who this Drover is to clouds.
func (t *Txn) PutFleetIdentity(i *drover.FleetIdentity) { t.insert(tableFleetIdentity, i) }

// PutFleetPool stores the pool.
func (t *Txn) PutFleetPool(p *drover.FleetPool) {
	t.insert(TableFleetPools, p)
	t.touch(TableFleetPools, p.Name)
}

// DeleteFleetPool forgets the pool.
func (t *Txn) DeleteFleetPool(p *drover.FleetPool) {
	t.remove(TableFleetPools, p)
	t.touch(TableFleetPools, p.Name)
}

// PutFleetInstance stores the machine.
func (t *Txn) PutFleetInstance(i *drover.FleetInstance) {
	t.insert(TableFleetInstances, i)
	t.touch(TableFleetInstances, i.ID)
}

// DeleteFleetInstance forgets the machine.
func (t *Txn) DeleteFleetInstance(i *drover.FleetInstance) {
	t.remove(TableFleetInstances, i)
	t.touch(TableFleetInstances, i.ID)
}

// AddFleetCost adds to the ledger's line of the day, pool and job.
func (t *Txn) AddFleetCost(c drover.FleetCost) {
	if old := get[drover.FleetCost](&t.reader, TableFleetCosts, costKey(&c)); old != nil {
		c.Cost, c.Hours = c.Cost+old.Cost, c.Hours+old.Hours
	}
	t.insert(TableFleetCosts, &c)
	t.touch(TableFleetCosts, c.Day)
}

// PutFleetMemory stores what was learned of a provider's cloud.
func (t *Txn) PutFleetMemory(m *drover.FleetMemory) { t.insert(tableFleetMemory, m) }

// RestoreFleetIdentity stores who this Drover is to clouds.
func (t *Txn) RestoreFleetIdentity(i *drover.FleetIdentity) { t.insert(tableFleetIdentity, i) }

// RestoreFleetPool stores a pool.
func (t *Txn) RestoreFleetPool(p *drover.FleetPool) { t.insert(TableFleetPools, p) }

// RestoreFleetInstance stores a machine.
func (t *Txn) RestoreFleetInstance(i *drover.FleetInstance) { t.insert(TableFleetInstances, i) }

// RestoreFleetCost stores a line of the ledger.
func (t *Txn) RestoreFleetCost(c *drover.FleetCost) { t.insert(TableFleetCosts, c) }
