package store

import (
	"fmt"

	"github.com/hashicorp/go-memdb"

	"github.com/drover-project/drover"
)

// The tables, as TableIndex and Watch name them.
const (
	TableJobs            = "jobs"
	TableJobVersions     = "job_versions"
	TableJobSummaries    = "job_summaries"
	TableNodes           = "nodes"
	TableAllocs          = "allocs"
	TableEvals           = "evals"
	TableDeployments     = "deployments"
	TableNamespaces      = "namespaces"
	TableNodePools       = "node_pools"
	TableSchedulerConfig = "scheduler_config"
	TableScalingEvents   = "scaling_events"
	TableJobSubmissions  = "job_submissions"
	tableUsage           = "usage"
)

// More things to watch: the allocations of a node or a job, the evaluations of a job. Their keys are the node's id
// and JobKey.
const (
	// WatchNodeAllocs wakes only when control changes an allocation of the node, not by the node's own updates.
	WatchNodeAllocs = "allocs_by_node"
	WatchJobAllocs  = "allocs_by_job"
	WatchJobEvals   = "evals_by_job"
)

const (
	indexID  = "id"
	indexJob = "job"
)

// JobKey is the key of a job in Watch.
func JobKey(namespace, id string) string { return namespace + "\x00" + id }

func jobPrefix(namespace, id string) string { return namespace + "\x00" + id + "\x00" }

// versionKey sorts the newest first.
func versionKey(j *drover.Job) string {
	return jobPrefix(j.Namespace, j.ID) + fmt.Sprintf("%016x", ^j.Version)
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
		table(TableJobs, func(j *drover.Job) string { return jobPrefix(j.Namespace, j.ID) }),
		table(TableJobVersions, versionKey),
		table(TableJobSummaries, func(r *JobRow) string { return jobPrefix(r.Summary.Namespace, r.Summary.JobID) }),
		table(TableNodes, func(n *drover.Node) string { return term(n.ID) }),
		table(TableEvals, func(e *drover.Evaluation) string { return term(e.ID) },
			index(indexJob, func(e *drover.Evaluation) string { return jobPrefix(e.Namespace, e.JobID) })),
		table(TableDeployments, func(d *drover.Deployment) string { return term(d.ID) },
			index(indexJob, func(d *drover.Deployment) string { return jobPrefix(d.Namespace, d.JobID) })),
		table(TableNamespaces, func(n *drover.Namespace) string { return term(n.Name) }),
		table(TableNodePools, func(p *drover.NodePool) string { return term(p.Name) }),
		table(TableSchedulerConfig, func(*drover.SchedulerConfiguration) string { return "config" }),
		table(TableScalingEvents, func(e *drover.JobScalingEvents) string { return jobPrefix(e.Namespace, e.JobID) }),
		table(TableJobSubmissions, submissionKey),
		table(tableUsage, func(u *usageRow) string { return term(u.NodeID) }),
	} {
		s.Tables[t.Name] = t
	}
	for _, t := range fleetTables() {
		s.Tables[t.Name] = t
	}
	return s
}
