package nomad

import (
	"iter"
	"net/http"
	"slices"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/tables"
)

func (f *Face) jobAllocations(w http.ResponseWriter, r *http.Request, id string) error {
	all, err := httpapi.BoolParam(r, "all", false)
	if err != nil {
		return err
	}
	l := stubLister(func(q query, s Snapshot) iter.Seq[*drover.Allocation] {
		return allocationsOf(s, q.namespace, id, all)
	}, true)
	l.on = []source{{table: tables.Allocs, key: tables.JobKey(namespaceOf(r), id), watch: tables.JobAllocs}}
	return l.serve(f, w, r)
}

// allocationsOf yields the job's allocations; with all, those of an earlier job of the same id too, which was purged and
// whose work may still be ending.
func allocationsOf(s Snapshot, namespace, id string, all bool) iter.Seq[*drover.Allocation] {
	job := s.Job(namespace, id)
	return func(yield func(*drover.Allocation) bool) {
		for a := range s.AllocationsByJob(namespace, id) {
			earlier := job != nil && a.Job != nil && a.Job.CreateIndex != job.CreateIndex
			if (all || !earlier) && !yield(a) {
				return
			}
		}
	}
}

// deploymentsOf is allocationsOf for deployments.
func deploymentsOf(s Snapshot, namespace, id string, all bool) iter.Seq[*drover.Deployment] {
	job := s.Job(namespace, id)
	return func(yield func(*drover.Deployment) bool) {
		for d := range s.DeploymentsByJob(namespace, id) {
			earlier := job != nil && d.JobCreateIndex != job.CreateIndex
			if (all || !earlier) && !yield(d) {
				return
			}
		}
	}
}

func (f *Face) jobEvaluations(w http.ResponseWriter, r *http.Request, id string) error {
	l := evaluationLister(func(q query, s Snapshot) iter.Seq[*drover.Evaluation] {
		return s.EvaluationsByJob(q.namespace, id)
	})
	l.on = []source{{table: tables.Evals, key: tables.JobKey(namespaceOf(r), id), watch: tables.JobEvals}}
	return l.serve(f, w, r)
}

func (f *Face) jobDeployments(w http.ResponseWriter, r *http.Request, id string) error {
	all, err := httpapi.BoolParam(r, "all", false)
	if err != nil {
		return err
	}
	l := deploymentLister(func(q query, s Snapshot) iter.Seq[*drover.Deployment] {
		return deploymentsOf(s, q.namespace, id, all)
	})
	l.on[0].key = tables.JobKey(namespaceOf(r), id)
	return l.serve(f, w, r)
}

// jobDeployment answers with the newest deployment, null if there is none.
func (f *Face) jobDeployment(w http.ResponseWriter, r *http.Request, id string) error {
	q, err := f.parseQuery(r)
	if err != nil {
		return err
	}
	var newest *drover.Deployment
	_, index, err := f.await(r.Context(), q, []source{{table: tables.Deployments, key: tables.JobKey(q.namespace, id)}}, func(s Snapshot) uint64 {
		newest = newestDeployment(s, q.namespace, id)
		if newest == nil {
			return s.TableIndex(tables.Deployments)
		}
		return newest.ModifyIndex
	})
	if err != nil {
		return err
	}
	f.setIndex(w, index)
	return httpapi.WriteJSON(w, r, http.StatusOK, newest)
}

func newestDeployment(s Snapshot, namespace, id string) (newest *drover.Deployment) {
	for d := range deploymentsOf(s, namespace, id, false) {
		if newest == nil || d.CreateIndex > newest.CreateIndex {
			newest = d
		}
	}
	return newest
}

func (f *Face) jobVersions(w http.ResponseWriter, r *http.Request, id string) error {
	diffs, err := httpapi.BoolParam(r, "diffs", false)
	if err != nil {
		return err
	}
	type versions struct {
		Versions []*drover.Job
		Diffs    []any
		queryMeta
	}
	return single(f, w, r, source{table: tables.Jobs, key: tables.JobKey(namespaceOf(r), id)}, "job versions", func(q query, s Snapshot) (*versions, uint64) {
		list := s.JobVersions(q.namespace, id)
		if len(list) == 0 {
			return nil, 0
		}
		v := &versions{Versions: list}
		var index uint64
		for i, j := range list {
			index = max(index, j.ModifyIndex)
			if diffs && f.DiffJobs != nil && i+1 < len(list) {
				v.Diffs = append(v.Diffs, f.DiffJobs(list[i+1], j))
			}
		}
		v.queryMeta = queryMeta{Index: index, KnownLeader: true}
		return v, index
	})
}

func (f *Face) jobServices(w http.ResponseWriter, r *http.Request, id string) error {
	if f.State.Snapshot().Job(namespaceOf(r), id) == nil {
		return drover.Errorf(drover.NotFound, "job not found")
	}
	return drover.Errorf(drover.NotImplemented, "service registrations are not implemented yet")
}

func (f *Face) jobActions(w http.ResponseWriter, r *http.Request, id string) error {
	job := f.State.Snapshot().Job(namespaceOf(r), id)
	if job == nil {
		return drover.Errorf(drover.NotFound, "job not found")
	}
	type action struct{ Name, TaskName, TaskGroupName string }
	list := []action{}
	for _, g := range job.TaskGroups {
		for _, t := range g.Tasks {
			for _, a := range t.Actions {
				list = append(list, action{a.Name, t.Name, g.Name})
			}
		}
	}
	return f.reply(w, r, struct{ Actions []action }{list})
}

// jobStatuses answers what Nomad's pages poll: jobs with their live allocations.
func (f *Face) jobStatuses(w http.ResponseWriter, r *http.Request) error {
	var b struct {
		Jobs            []drover.NamespacedID
		IncludeChildren bool
	}
	if r.Method != http.MethodGet {
		if err := httpapi.DecodeOptionalJSON(r, &b); err != nil {
			return err
		}
	}
	children, err := httpapi.BoolParam(r, "include_children", b.IncludeChildren)
	if err != nil {
		return err
	}
	return lister[*drover.Job, jobStatus]{
		on:    []source{{table: tables.Jobs}, {table: tables.Allocs}, {table: tables.Deployments}},
		items: func(q query, s Snapshot) iter.Seq[*drover.Job] { return s.Jobs(q.namespace, q.prefix) },
		keep: func(j *drover.Job) bool {
			return (children || j.ParentID == "") && (len(b.Jobs) == 0 || slices.Contains(b.Jobs, j.Key()))
		},
		id:      func(j *drover.Job) string { return j.Namespace + "." + j.ID },
		created: func(j *drover.Job) uint64 { return j.ModifyIndex },
		view:    viewStatus,
	}.serve(f, w, r)
}

type jobStatus struct {
	*drover.JobListStub
	Version          uint64
	GroupCountSum    int
	Allocs           []allocStatus
	LatestDeployment *deploymentStatus
	ChildStatuses    []string
}

type allocStatus struct {
	ID               string
	Group            string
	ClientStatus     string
	NodeID           string
	JobVersion       uint64
	DeploymentStatus *drover.AllocDeploymentStatus
	FollowupEvalID   string
	NextAllocation   string
	HasPausedTask    bool
}

type deploymentStatus struct {
	ID                string
	IsActive          bool
	JobVersion        uint64
	Status            string
	StatusDescription string
}

func viewStatus(j *drover.Job, s Snapshot) jobStatus {
	v := jobStatus{JobListStub: j.Stub(nil), Version: j.Version, Allocs: []allocStatus{}}
	for _, g := range j.TaskGroups {
		if g.Count != nil {
			v.GroupCountSum += *g.Count
		}
	}
	for a := range allocationsOf(s, j.Namespace, j.ID, false) {
		v.Allocs = append(v.Allocs, allocStatus{
			ID: a.ID, Group: a.TaskGroup, ClientStatus: a.ClientStatus, NodeID: a.NodeID, JobVersion: a.Version(),
			DeploymentStatus: a.DeploymentStatus, FollowupEvalID: a.FollowupEvalID, NextAllocation: a.NextAllocation,
		})
	}
	if d := newestDeployment(s, j.Namespace, j.ID); d != nil {
		v.LatestDeployment = &deploymentStatus{d.ID, d.Active(), d.JobVersion, d.Status, d.StatusDescription}
	}
	return v
}
