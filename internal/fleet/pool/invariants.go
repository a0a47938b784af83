package pool

import (
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/provider"
	"github.com/drover-project/drover/internal/invariant"
)

// checkIdle: a machine that is about to be destroyed has no work. The exceptions: a person wants it gone, the cloud takes it
// back anyway, or control has lost it and with it its work.
func checkIdle(i *fleet.Instance, why string) {
	if i.Busy() && why != WhyKilled && i.InterruptAt.IsZero() && i.LostAt.IsZero() {
		invariant.Breach(invariant.BusyIsKept, i.ID, "it has %d allocations or runners and is destroyed: %s", i.Work, why)
	}
}

// checkOwned: a machine of the cloud's list that has our owner's tag and lives is known here. e is what was found of it.
func (c *Core) checkOwned(m *provider.Machine, e *entry) {
	if !c.owns(m.Tags[fleet.TagOwner]) || m.State == provider.Terminated || m.State == provider.Terminating {
		return
	}
	if e == nil || c.table[e.ID] != e {
		invariant.Breach(invariant.InstancesOwned, m.ID, "the cloud lists it with our tag and intent %q, and nobody here knows it", m.Intent)
	}
}
