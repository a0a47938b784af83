package store

import (
	"iter"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/tables"
	"github.com/drover-project/drover/tenancy"
)

// get returns the value of the unique key, or nil.
func get[T any](r *reader, table, key string) *T {
	raw, err := r.txn.First(table, indexID, key)
	if err != nil {
		panic(err) // a table that the schema does not have
	}
	if raw == nil {
		return nil
	}
	return raw.(*T)
}

// first returns the first value with the key in an index, or nil; none has the key "".
func first[T any](r *reader, table, index, key string) *T {
	if key == "" {
		return nil
	}
	raw, err := r.txn.First(table, index, key)
	if err != nil {
		panic(err) // an index that the schema does not have
	}
	if raw == nil {
		return nil
	}
	return raw.(*T)
}

// scan yields the values whose key in the index begins with prefix, in the order of their keys. Inside a Txn the
// table must not be written before the scan ends.
func scan[T any](r *reader, table, index, prefix string) iter.Seq[*T] {
	return func(yield func(*T) bool) {
		it, err := r.txn.Get(table, index+"_prefix", prefix)
		if err != nil {
			panic(err)
		}
		for raw := it.Next(); raw != nil; raw = it.Next() {
			if !yield(raw.(*T)) {
				return
			}
		}
	}
}

func filter[T any](seq iter.Seq[*T], keep func(*T) bool) iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for v := range seq {
			if keep(v) && !yield(v) {
				return
			}
		}
	}
}

// byNamespace scans a table whose keys are plain ids; namespace "*" means all.
func byNamespace[T any](r *reader, table, namespace, prefix string, of func(*T) string) iter.Seq[*T] {
	all := scan[T](r, table, indexID, prefix)
	if namespace == "*" {
		return all
	}
	return filter(all, func(v *T) bool { return of(v) == namespace })
}

// Job returns the job or nil.
func (r *reader) Job(namespace, id string) *drover.Job {
	return get[drover.Job](r, tables.Jobs, jobPrefix(namespace, id))
}

// Jobs yields the namespace's jobs ("*" = of all) whose ids begin with prefix, ordered by namespace and id.
func (r *reader) Jobs(namespace, prefix string) iter.Seq[*drover.Job] {
	switch {
	case namespace == "*" && prefix == "":
		return scan[drover.Job](r, tables.Jobs, indexID, "")
	case namespace == "*":
		return r.jobsOfAll(prefix)
	}
	return scan[drover.Job](r, tables.Jobs, indexID, namespace+"\x00"+prefix)
}

// jobsOfAll yields the jobs of all namespaces whose ids begin with the prefix. It skips the others.
func (r *reader) jobsOfAll(prefix string) iter.Seq[*drover.Job] {
	return func(yield func(*drover.Job) bool) {
		for from := ""; ; {
			it, err := r.txn.LowerBound(tables.Jobs, indexID, from)
			if err != nil {
				panic(err)
			}
			first, ok := it.Next().(*drover.Job)
			if !ok {
				return
			}
			for j := range scan[drover.Job](r, tables.Jobs, indexID, first.Namespace+"\x00"+prefix) {
				if !yield(j) {
					return
				}
			}
			from = first.Namespace + "\x01"
		}
	}
}

// DispatchedJob returns the parent's child that was dispatched with the idempotency token, or nil. Logs of older
// programs may have several: the first one counts.
func (r *reader) DispatchedJob(namespace, parent, token string) *drover.Job {
	var first *drover.Job
	key := dispatchKey(&drover.Job{Namespace: namespace, ParentID: parent, DispatchIdempotencyToken: token})
	for j := range scan[drover.Job](r, tables.Jobs, indexDispatch, key) {
		if j.DispatchIdempotencyToken == token && (first == nil || j.CreateIndex < first.CreateIndex) {
			first = j
		}
	}
	return first
}

// JobVersions returns the versions kept, the newest first.
func (r *reader) JobVersions(namespace, id string) []*drover.Job {
	var out []*drover.Job
	for j := range scan[drover.Job](r, tables.JobVersions, indexID, jobPrefix(namespace, id)) {
		out = append(out, j)
	}
	return out
}

// JobVersion returns one version or nil.
func (r *reader) JobVersion(namespace, id string, version uint64) *drover.Job {
	return get[drover.Job](r, tables.JobVersions, versionKey(&drover.Job{Namespace: namespace, ID: id, Version: version}))
}

// ScalingEvents returns the job's scaling events, or nil if there are none. Do not change them.
func (r *reader) ScalingEvents(namespace, id string) *drover.JobScalingEvents {
	return get[drover.JobScalingEvents](r, tables.ScalingEvents, jobPrefix(namespace, id))
}

// Node returns the node or nil.
func (r *reader) Node(id string) *drover.Node { return get[drover.Node](r, tables.Nodes, term(id)) }

// Nodes yields the nodes whose ids begin with prefix, ordered by id.
func (r *reader) Nodes(prefix string) iter.Seq[*drover.Node] {
	return scan[drover.Node](r, tables.Nodes, indexID, prefix)
}

// Allocation returns the allocation or nil.
func (r *reader) Allocation(id string) *drover.Allocation {
	return r.allocs.get(id)
}

// Allocations yields the namespace's allocations ("*" = of all) whose ids begin with prefix, ordered by id.
func (r *reader) Allocations(namespace, prefix string) iter.Seq[*drover.Allocation] {
	all := r.allocs.scan(prefix)
	if namespace == "*" {
		return all
	}
	return filter(all, func(a *drover.Allocation) bool { return a.Namespace == namespace })
}

// AllocationsByJob yields the job's allocations, also those of a purged predecessor of the same id: first the active
// ones, then those that both sides are done with, each ordered by id.
func (r *reader) AllocationsByJob(namespace, id string) iter.Seq[*drover.Allocation] {
	s := r.jobAllocs(namespace, id)
	return concat(s.open, s.closed)
}

func (r *reader) jobAllocs(namespace, id string) split {
	if row := get[JobRow](r, tables.JobSummaries, jobPrefix(namespace, id)); row != nil {
		return row.allocs
	}
	return split{}
}

func (r *reader) nodeAllocs(nodeID string) split {
	if u := get[usageRow](r, tableUsage, term(nodeID)); u != nil {
		return u.allocs
	}
	return split{}
}

// ActiveAllocationsByJob yields the job's allocations without those that both sides are done with: the node ended
// them, and control wanted that or they had been claimed.
func (r *reader) ActiveAllocationsByJob(namespace, id string) iter.Seq[*drover.Allocation] {
	return r.jobAllocs(namespace, id).open.scan("")
}

// UnfinishedByNode yields the node's allocations that have not ended, ordered by id: what was there before costs
// nothing.
func (r *reader) UnfinishedByNode(nodeID string) iter.Seq[*drover.Allocation] {
	return r.nodeAllocs(nodeID).open.scan("")
}

// UnfinishedCount is how many allocations of the node have not ended.
func (r *reader) UnfinishedCount(nodeID string) int { return r.nodeAllocs(nodeID).open.size() }

// AllocationsByNode yields the node's allocations, ended ones too: these come last.
func (r *reader) AllocationsByNode(nodeID string) iter.Seq[*drover.Allocation] {
	s := r.nodeAllocs(nodeID)
	return concat(s.open, s.closed)
}

// AllocationsByEval yields the allocations that the evaluation placed; none if the evaluation is unknown.
func (r *reader) AllocationsByEval(evalID string) iter.Seq[*drover.Allocation] {
	e := r.Evaluation(evalID)
	if e == nil {
		return func(func(*drover.Allocation) bool) {}
	}
	return filter(r.AllocationsByJob(e.Namespace, e.JobID),
		func(a *drover.Allocation) bool { return a.EvalID == evalID })
}

// Evaluation returns the evaluation or nil.
func (r *reader) Evaluation(id string) *drover.Evaluation {
	return get[drover.Evaluation](r, tables.Evals, term(id))
}

// Evaluations yields the namespace's evaluations ("*" = of all) whose ids begin with prefix, ordered by id.
func (r *reader) Evaluations(namespace, prefix string) iter.Seq[*drover.Evaluation] {
	return byNamespace(r, tables.Evals, namespace, prefix, func(e *drover.Evaluation) string { return e.Namespace })
}

// EvaluationsByJob yields the job's evaluations.
func (r *reader) EvaluationsByJob(namespace, id string) iter.Seq[*drover.Evaluation] {
	return scan[drover.Evaluation](r, tables.Evals, indexJob, jobPrefix(namespace, id))
}

// Deployment returns the deployment or nil.
func (r *reader) Deployment(id string) *drover.Deployment {
	return get[drover.Deployment](r, tables.Deployments, term(id))
}

// Deployments yields the namespace's deployments ("*" = of all) whose ids begin with prefix, ordered by id.
func (r *reader) Deployments(namespace, prefix string) iter.Seq[*drover.Deployment] {
	return byNamespace(r, tables.Deployments, namespace, prefix, func(d *drover.Deployment) string { return d.Namespace })
}

// DeploymentsByJob yields the job's deployments.
func (r *reader) DeploymentsByJob(namespace, id string) iter.Seq[*drover.Deployment] {
	return scan[drover.Deployment](r, tables.Deployments, indexJob, jobPrefix(namespace, id))
}

// Namespace returns the namespace or nil.
func (r *reader) Namespace(name string) *tenancy.Namespace {
	return get[tenancy.Namespace](r, tables.Namespaces, term(name))
}

// Namespaces yields all namespaces by name.
func (r *reader) Namespaces() iter.Seq[*tenancy.Namespace] {
	return scan[tenancy.Namespace](r, tables.Namespaces, indexID, "")
}

// NodePool returns the node pool or nil.
func (r *reader) NodePool(name string) *drover.NodePool {
	return get[drover.NodePool](r, tables.NodePools, term(name))
}

// NodePools yields all node pools by name.
func (r *reader) NodePools() iter.Seq[*drover.NodePool] {
	return scan[drover.NodePool](r, tables.NodePools, indexID, "")
}

// Cluster returns what the servers are together, nil if they are no cluster.
func (r *reader) Cluster() *cluster.State { return get[cluster.State](r, tables.Cluster, "cluster") }

// Lessees yields the servers that warm runners are leased to, by id.
func (r *reader) Lessees() iter.Seq[*cluster.Lessee] {
	return scan[cluster.Lessee](r, tables.Lessees, indexID, "")
}

// Lessee returns the one that the runner with such an Allocation.Lease is leased to, nil if that has ended.
func (r *reader) Lessee(incarnation uint64) *cluster.Lessee {
	for l := range r.Lessees() { // a handful
		if l.Incarnation == incarnation {
			return l
		}
	}
	return nil
}

// Autopilot returns how the servers are kept healthy, nil if nobody stored it.
func (r *reader) Autopilot() *cluster.Autopilot {
	return get[cluster.Autopilot](r, tables.Autopilot, "autopilot")
}

// SchedulerConfig returns the scheduler's configuration, never nil.
func (r *reader) SchedulerConfig() *drover.SchedulerConfiguration {
	return get[drover.SchedulerConfiguration](r, tables.SchedulerConfig, "config")
}
