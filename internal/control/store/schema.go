package store

import (
	"fmt"
	"slices"

	"github.com/hashicorp/go-memdb"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/tables"
	"github.com/drover-project/drover/service"
	"github.com/drover-project/drover/tenancy"
)

// tableUsage counts what allocations have of nodes; nobody watches it.
const tableUsage = "usage"

const (
	indexID       = "id"
	indexJob      = "job"
	indexDispatch = "dispatch"
	indexAlloc    = "alloc"
)

func jobPrefix(namespace, id string) string { return namespace + "\x00" + id + "\x00" }

// versionKey sorts the newest first.
func versionKey(j *drover.Job) string {
	return jobPrefix(j.Namespace, j.ID) + fmt.Sprintf("%016x", ^j.Version)
}

// dispatchKey is the idempotency token of a dispatched job, among those of its parent.
func dispatchKey(j *drover.Job) string {
	if j.DispatchIdempotencyToken == "" {
		return ""
	}
	return jobPrefix(j.Namespace, j.ParentID) + term(j.DispatchIdempotencyToken)
}

// indexer indexes values of *T by a string made of them; its arguments are such strings, or prefixes. A value with
// the key "" is not in the index.
type indexer[T any] struct{ key func(*T) string }

func (i indexer[T]) FromObject(raw any) (bool, []byte, error) {
	key := i.key(raw.(*T))
	return key != "", []byte(key), nil
}

func (i indexer[T]) FromArgs(args ...any) ([]byte, error)       { return []byte(args[0].(string)), nil }
func (i indexer[T]) PrefixFromArgs(args ...any) ([]byte, error) { return []byte(args[0].(string)), nil }

func table[T any](name string, id func(*T) string, more ...*memdb.IndexSchema) *memdb.TableSchema {
	t := &memdb.TableSchema{Name: name, Indexes: map[string]*memdb.IndexSchema{
		indexID: {Name: indexID, Unique: true, Indexer: indexer[T]{id}},
	}}
	for _, m := range more {
		t.Indexes[m.Name] = m
	}
	return t
}

func index[T any](name string, key func(*T) string) *memdb.IndexSchema {
	return &memdb.IndexSchema{Name: name, AllowMissing: true, Indexer: indexer[T]{key}}
}

// Ids end in a zero byte inside the indexes, so that one is never the prefix of another.
func term(id string) string { return id + "\x00" }

// done reports whether the node ended it, and control wanted that or it had been claimed.
func done(a *drover.Allocation) bool {
	return a.ClientTerminal() && (a.ServerTerminal() || a.Claim != nil)
}

func schema() *memdb.DBSchema {
	s := &memdb.DBSchema{Tables: map[string]*memdb.TableSchema{}}
	for _, t := range []*memdb.TableSchema{
		table(tables.Jobs, func(j *drover.Job) string { return jobPrefix(j.Namespace, j.ID) }, index(indexDispatch, dispatchKey)),
		table(tables.JobVersions, versionKey),
		table(tables.JobSummaries, func(r *JobRow) string { return jobPrefix(r.Summary.Namespace, r.Summary.JobID) }),
		table(tables.Nodes, func(n *drover.Node) string { return term(n.ID) }),
		table(tables.Evals, func(e *drover.Evaluation) string { return term(e.ID) },
			index(indexJob, func(e *drover.Evaluation) string { return jobPrefix(e.Namespace, e.JobID) })),
		table(tables.Deployments, func(d *drover.Deployment) string { return term(d.ID) },
			index(indexJob, func(d *drover.Deployment) string { return jobPrefix(d.Namespace, d.JobID) })),
		table(tables.Namespaces, func(n *tenancy.Namespace) string { return term(n.Name) }, index(indexQuota, quotaKey)),
		table(tables.ExecutionsSpent, func(x *execution.Spent) string { return term(x.Namespace) }),
		table(tables.ExecutionSlots, func(x *execution.Slot) string { return term(x.AllocID) + term(x.ID) }),
		table(tables.Quotas, func(q *tenancy.QuotaSpec) string { return term(q.Name) }),
		table(tables.AdmissionRules, func(r *drover.AdmissionRule) string { return term(r.Name) }),
		table(tables.Revocations, func(r *cluster.Revocation) string { return term(r.ID) }),
		table(tableTenants, func(u *tenantRow) string { return term(u.Namespace) }),
		table(tables.NodePools, func(p *drover.NodePool) string { return term(p.Name) }),
		table(tables.Cluster, func(*cluster.State) string { return "cluster" }),
		table(tables.Lessees, func(l *cluster.Lessee) string { return term(l.Server) }),
		table(tables.Autopilot, func(*cluster.Autopilot) string { return "autopilot" }),
		table(tables.SchedulerConfig, func(*drover.SchedulerConfiguration) string { return "config" }),
		table(tables.ScalingEvents, func(e *drover.JobScalingEvents) string { return jobPrefix(e.Namespace, e.JobID) }),
		table(tables.JobSubmissions, submissionKey),
		executionTable(),
		table(tables.Services, registrationKey,
			index(indexAlloc, func(r *service.Registration) string { return term(r.AllocID) + term(r.ID) })),
		table(tableUsage, func(u *usageRow) string { return term(u.NodeID) }),
	} {
		s.Tables[t.Name] = t
	}
	for _, t := range slices.Concat(fleetTables(), aclTables(), secretTables(), volumeTables()) {
		s.Tables[t.Name] = t
	}
	return s
}
