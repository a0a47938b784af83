package fsm

import (
	"cmp"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/quotas"
	"github.com/drover-project/drover/tenancy"
)

// initCluster gives the cluster its identity. Only the first such entry counts: the identity never changes. The version is that
// which the server wrote while it was alone.
func (e *entry) initCluster(c *command.InitCluster) {
	next := e.cluster()
	if next.ID == "" {
		next.ID, next.Epoch = c.ID, cmp.Or(next.Epoch, c.Epoch)
		e.txn.PutCluster(&next)
	}
}

// raiseVersion raises the cluster's version. It never sinks.
func (e *entry) raiseVersion(c *command.RaiseVersion) {
	next := e.cluster()
	if next.Version < c.Version {
		next.Version = c.Version
		e.txn.PutCluster(&next)
	}
}

// cluster returns a copy of what the servers are together, to be changed and stored.
func (e *entry) cluster() cluster.State {
	next := cluster.State{CreateIndex: e.index}
	if old := e.txn.Cluster(); old != nil {
		next = *old
	}
	next.Version, next.ModifyIndex = cluster.VersionOf(&next), e.index
	return next
}

// setAutopilot stores how the servers are kept healthy, and reports whether it did. It did not if the command compares and the
// stored one was changed meanwhile.
func (e *entry) setAutopilot(c *command.SetAutopilot) bool {
	var old cluster.Autopilot
	if stored := e.txn.Autopilot(); stored != nil {
		old = *stored
	}
	if c.Config == nil || c.CAS && old.ModifyIndex != c.Config.ModifyIndex {
		return false
	}
	next := *c.Config
	next.CreateIndex, next.ModifyIndex = cmp.Or(old.CreateIndex, e.index), e.index
	e.txn.PutAutopilot(&next)
	return true
}

// setSchedulerConfig stores the configuration and reports whether it did. It did not if the command compares and the
// stored one was changed meanwhile.
func (e *entry) setSchedulerConfig(c *command.SetSchedulerConfig) bool {
	old := e.txn.SchedulerConfig()
	if c.Config == nil || c.CAS && old.ModifyIndex != c.Config.ModifyIndex {
		return false
	}
	next := *c.Config
	next.CreateIndex, next.ModifyIndex = old.CreateIndex, e.index
	if next.CreateIndex == 0 {
		next.CreateIndex = e.index
	}
	e.txn.PutSchedulerConfig(&next)
	return true
}

// upsertNamespaces stores namespaces, keeping the creation index of those that exist. Intake has checked their names. Errors:
// Invalid for a quota that there is not.
func (e *entry) upsertNamespaces(c *command.UpsertNamespaces) error {
	if err := quotas.Check(e.txn, c.Namespaces); err != nil {
		return err
	}
	for _, ns := range c.Namespaces {
		next := *ns
		next.CreateIndex, next.ModifyIndex = e.index, e.index
		if old := e.txn.Namespace(ns.Name); old != nil {
			next.CreateIndex = old.CreateIndex
		}
		e.txn.PutNamespace(&next)
	}
	return nil
}

// deleteNamespaces forgets all the namespaces or none. Errors: NotFound, Invalid for the default namespace, Conflict if
// one has a job that is not dead. The messages are Nomad's.
func (e *entry) deleteNamespaces(c *command.DeleteNamespaces) error {
	var doomed []*tenancy.Namespace
	for _, name := range c.Names {
		ns := e.txn.Namespace(name)
		switch {
		case ns == nil:
			return drover.Errorf(drover.NotFound, "namespace not found: %q", name)
		case name == drover.DefaultNamespace:
			return drover.Errorf(drover.Invalid, "default namespace can not be deleted")
		}
		for j := range e.txn.Jobs(name, "") {
			if j.Status != drover.JobStatusDead {
				return drover.Errorf(drover.Conflict, "namespace %q contains at least one non-terminal job %q. "+
					"All jobs must be terminal in namespace before it can be deleted", name, j.ID)
			}
		}
		for v := range e.txn.HostVolumes(name, "") {
			return drover.Errorf(drover.Conflict, "namespace %q contains at least one host volume %q. "+
				"All host volumes must be deleted before it can be deleted", name, v.ID)
		}
		doomed = append(doomed, ns)
	}
	for _, ns := range doomed {
		e.txn.DeleteNamespace(ns)
	}
	return nil
}

// builtinPool reports whether every cluster has the pool. Such pools can be neither changed nor deleted.
func builtinPool(name string) bool {
	return name == drover.DefaultNodePool || name == drover.AllNodePool
}

// upsertNodePools stores all the pools or none. Errors: Invalid for a built-in pool.
func (e *entry) upsertNodePools(c *command.UpsertNodePools) error {
	for _, p := range c.Pools {
		if builtinPool(p.Name) {
			return drover.Errorf(drover.Invalid, "modifying node pool %q is not allowed", p.Name)
		}
	}
	for _, p := range c.Pools {
		next := *p
		next.CreateIndex, next.ModifyIndex = e.index, e.index
		if old := e.txn.NodePool(p.Name); old != nil {
			next.CreateIndex = old.CreateIndex
		}
		e.putPool(&next)
	}
	return nil
}

// deleteNodePools forgets all the pools or none. Errors: NotFound, Invalid for a built-in pool, Conflict if one has
// nodes, or jobs of any namespace that are not dead.
func (e *entry) deleteNodePools(c *command.DeleteNodePools) error {
	var doomed []*drover.NodePool
	for _, name := range c.Names {
		p := e.txn.NodePool(name)
		switch {
		case p == nil:
			return drover.Errorf(drover.NotFound, "node pool %s not found", name)
		case builtinPool(name):
			return drover.Errorf(drover.Invalid, "deleting node pool %q is not allowed", name)
		}
		for n := range e.txn.Nodes("") {
			if n.NodePool == name {
				return drover.Errorf(drover.Conflict, "node pool %q has nodes", name)
			}
		}
		for j := range e.txn.Jobs("*", "") {
			if j.NodePool == name && j.Status != drover.JobStatusDead {
				return drover.Errorf(drover.Conflict, "node pool %q has non-terminal jobs", name)
			}
		}
		doomed = append(doomed, p)
	}
	for _, p := range doomed {
		e.deletePool(p)
	}
	return nil
}

// reap forgets what garbage collection chose. The ids come from an older snapshot, so those that have vanished are
// skipped. An allocation that still held resources frees them, which may unblock evaluations.
func (e *entry) reap(c *command.Reap) {
	e.deleteEvals(c.Evals)
	for _, id := range c.Allocs {
		if a := e.txn.Allocation(id); a != nil {
			if a.HoldsResources() {
				e.freed.add(change[string, struct{}]{key: a.NodeID})
			}
			e.txn.DeleteAllocation(a)
		}
	}
	for _, key := range c.Jobs {
		if j := e.txn.Job(key.Namespace, key.ID); j != nil {
			e.countChild(j, j, nil)
			e.deleteJob(j)
		}
	}
	for _, id := range c.Deployments {
		if d := e.txn.Deployment(id); d != nil {
			e.txn.DeleteDeployment(d)
		}
	}
	e.deregisterNodes(&command.DeregisterNodes{IDs: c.Nodes})
}
