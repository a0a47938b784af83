package jobs

import (
	"iter"
	"net/http"
	"slices"
	"strconv"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/nomad/allocations"
	"github.com/drover-project/drover/internal/httpapi/nomad/answer"
	"github.com/drover-project/drover/internal/httpapi/nomad/evaluations"
	"github.com/drover-project/drover/internal/httpapi/nomad/services"
	"github.com/drover-project/drover/internal/tables"
	"github.com/drover-project/drover/service"
)

// readJob answers GET /v1/job/ID with the job as it is stored.
func (f *face) readJob(w http.ResponseWriter, r *http.Request, id string) error {
	return answer.Single(f.Cluster, w, r, ofJob(tables.Jobs, r, id), "job", func(q answer.Query, s answer.Snapshot) (*drover.Job, uint64) {
		if j := s.Job(q.Namespace, id); j != nil {
			return j, j.ModifyIndex
		}
		return nil, 0
	})
}

// jobSummary answers GET /v1/job/ID/summary: how many allocations of each group are in which state.
func (f *face) jobSummary(w http.ResponseWriter, r *http.Request, id string) error {
	find := func(q answer.Query, s answer.Snapshot) (*drover.JobSummary, uint64) {
		if j := s.JobSummary(q.Namespace, id); j != nil {
			return j, j.ModifyIndex
		}
		return nil, 0
	}
	return answer.Single(f.Cluster, w, r, ofJob(tables.JobSummaries, r, id), "job", find)
}

// jobAllocations answers GET /v1/job/ID/allocations, as allocationsOf selects them.
func (f *face) jobAllocations(w http.ResponseWriter, r *http.Request, id string) error {
	all, err := httpapi.BoolParam(r, "all", false)
	if err != nil {
		return err
	}
	l := allocations.Stubs(func(q answer.Query, s answer.Snapshot) iter.Seq[*drover.Allocation] {
		return allocationsOf(s, q.Namespace, id, all)
	}, true)
	l.On = []answer.Source{{Table: tables.Allocs, Key: tables.JobKey(answer.Namespace(r), id), Watch: tables.JobAllocs}}
	return l.Serve(f.Cluster, w, r)
}

// allocationsOf yields the job's allocations; with all, those of an earlier job of the same id too, which was purged and
// whose work may still be ending.
func allocationsOf(s answer.Snapshot, namespace, id string, all bool) iter.Seq[*drover.Allocation] {
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
func deploymentsOf(s answer.Snapshot, namespace, id string, all bool) iter.Seq[*drover.Deployment] {
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

// jobEvaluations answers GET /v1/job/ID/evaluations.
func (f *face) jobEvaluations(w http.ResponseWriter, r *http.Request, id string) error {
	l := evaluations.List(func(q answer.Query, s answer.Snapshot) iter.Seq[*drover.Evaluation] {
		return s.EvaluationsByJob(q.Namespace, id)
	})
	l.On = []answer.Source{{Table: tables.Evals, Key: tables.JobKey(answer.Namespace(r), id), Watch: tables.JobEvals}}
	return l.Serve(f.Cluster, w, r)
}

// jobDeployments answers GET /v1/job/ID/deployments, as deploymentsOf selects them.
func (f *face) jobDeployments(w http.ResponseWriter, r *http.Request, id string) error {
	all, err := httpapi.BoolParam(r, "all", false)
	if err != nil {
		return err
	}
	l := evaluations.ListDeployments(func(q answer.Query, s answer.Snapshot) iter.Seq[*drover.Deployment] {
		return deploymentsOf(s, q.Namespace, id, all)
	})
	l.On[0].Key = tables.JobKey(answer.Namespace(r), id)
	return l.Serve(f.Cluster, w, r)
}

// jobDeployment answers with the newest deployment, null if there is none.
func (f *face) jobDeployment(w http.ResponseWriter, r *http.Request, id string) error {
	q, err := f.ParseQuery(r)
	if err != nil {
		return err
	}
	var newest *drover.Deployment
	_, index, err := f.Await(r.Context(), q, []answer.Source{ofJob(tables.Deployments, r, id)}, func(s answer.Snapshot) uint64 {
		newest = newestDeployment(s, q.Namespace, id)
		if newest == nil {
			return s.TableIndex(tables.Deployments)
		}
		return newest.ModifyIndex
	})
	if err != nil {
		return err
	}
	f.SetIndex(w, index)
	return httpapi.WriteJSON(w, r, http.StatusOK, newest)
}

// newestDeployment returns the deployment that was created last, of the present job only; nil if there is none.
func newestDeployment(s answer.Snapshot, namespace, id string) (newest *drover.Deployment) {
	for d := range deploymentsOf(s, namespace, id, false) {
		if newest == nil || d.CreateIndex > newest.CreateIndex {
			newest = d
		}
	}
	return newest
}

// jobVersions answers GET /v1/job/ID/versions, the newest first; diffs=true adds how each differs from the one before, or
// from that of diff_tag or diff_version.
func (f *face) jobVersions(w http.ResponseWriter, r *http.Request, id string) error {
	diffs, err := httpapi.BoolParam(r, "diffs", false)
	if err != nil {
		return err
	}
	base, err := baseOf(r)
	if err != nil {
		return err
	}
	var missing error
	type versions struct {
		Versions []*drover.Job
		Diffs    []any
		answer.Meta
	}
	find := func(q answer.Query, s answer.Snapshot) (*versions, uint64) {
		list := s.JobVersions(q.Namespace, id)
		if len(list) == 0 {
			return nil, 0
		}
		v := &versions{Versions: list}
		var index uint64
		for _, j := range list {
			index = max(index, j.ModifyIndex)
		}
		if diffs && f.DiffJobs != nil {
			v.Diffs, missing = f.diffsOf(list, base)
		}
		v.Meta = f.MetaOf(index)
		return v, index
	}
	if base != nil { // which may not be there: nobody waits for it
		find(answer.Query{Namespace: answer.Namespace(r)}, f.State.Snapshot())
		if missing != nil {
			return missing
		}
	}
	return answer.Single(f.Cluster, w, r, ofJob(tables.Jobs, r, id), "job versions", find)
}

// baseOf is what tells the version that others are compared with; nil = each with the one before.
func baseOf(r *http.Request) (func(*drover.Job) bool, error) {
	q := r.URL.Query()
	tag, version := q.Get("diff_tag"), q.Get("diff_version")
	switch {
	case tag != "" && version != "":
		return nil, drover.Errorf(drover.Invalid, "diff_tag and diff_version cannot be given together")
	case tag != "":
		return func(j *drover.Job) bool { return j.VersionTag != nil && j.VersionTag.Name == tag }, nil
	case version != "":
		n, err := strconv.ParseUint(version, 10, 64)
		if err != nil {
			return nil, drover.Errorf(drover.Invalid, "diff_version: must be the number of a version, got %q", version)
		}
		return func(j *drover.Job) bool { return j.Version == n }, nil
	}
	return nil, nil
}

// diffsOf compares versions, the newest first, with the one before each, of which the oldest has none, or all of them with
// one. Errors: NotFound.
func (f *face) diffsOf(list []*drover.Job, base func(*drover.Job) bool) (out []any, err error) {
	if base == nil {
		for i := range len(list) - 1 {
			out = append(out, f.DiffJobs(list[i+1], list[i]))
		}
		return out, nil
	}
	i := slices.IndexFunc(list, base)
	if i < 0 {
		return nil, drover.Errorf(drover.NotFound, "the job has no version of that diff_tag or diff_version")
	}
	for _, j := range list {
		out = append(out, f.DiffJobs(list[i], j))
	}
	return out, nil
}

// jobServices answers GET /v1/job/ID/services with the registrations of the job's allocations.
func (f *face) jobServices(w http.ResponseWriter, r *http.Request, id string) error {
	if f.State.Snapshot().Job(answer.Namespace(r), id) == nil {
		return drover.Errorf(drover.NotFound, "job not found")
	}
	return services.List(func(q answer.Query, s answer.Snapshot) iter.Seq[*service.Registration] {
		return func(yield func(*service.Registration) bool) {
			for a := range s.AllocationsByJob(q.Namespace, id) {
				for r := range s.RegistrationsOf(a.ID) {
					if !yield(r) {
						return
					}
				}
			}
		}
	}).Serve(f.Cluster, w, r)
}

// jobActions answers GET /v1/job/ID/actions with a list of the actions of all tasks. Package allocations runs them.
func (f *face) jobActions(w http.ResponseWriter, r *http.Request, id string) error {
	job := f.State.Snapshot().Job(answer.Namespace(r), id)
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
	return f.Reply(w, r, list)
}

// ofJob is the row of the job that a request asks for, in a table whose rows are jobs'.
func ofJob(table string, r *http.Request, id string) answer.Source {
	return answer.Source{Table: table, Key: tables.JobKey(answer.Namespace(r), id)}
}
