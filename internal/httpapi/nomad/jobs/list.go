package jobs

import (
	"iter"
	"net/http"
	"slices"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/nomad/answer"
	"github.com/drover-project/drover/internal/policy"
	"github.com/drover-project/drover/internal/tables"
)

// listJobs answers GET /v1/jobs with a stub of each job and its summary; meta=true adds the metadata.
func (f *face) listJobs(w http.ResponseWriter, r *http.Request) error {
	meta, err := httpapi.BoolParam(r, "meta", false)
	if err != nil {
		return err
	}
	return answer.Lister[*drover.Job, *drover.JobListStub]{
		On:    []answer.Source{{Table: tables.Jobs}, {Table: tables.JobSummaries}},
		Items: func(q answer.Query, s answer.Snapshot) iter.Seq[*drover.Job] { return s.Jobs(q.Namespace, q.Prefix) },
		ID:    func(j *drover.Job) string { return j.Namespace + "." + j.ID },
		Sees:  answer.In(policy.ListJobs, namespaceOf),
		Search: answer.Search[*drover.Job]{
			Words:  func(j *drover.Job) [4]string { return [4]string{j.ID, j.Name, j.Namespace, j.NodePool} },
			Status: func(j *drover.Job) string { return j.Status },
			Sorts: map[string]func(*drover.Job) (uint64, string){
				"name":      func(j *drover.Job) (uint64, string) { return 0, j.ID },
				"namespace": func(j *drover.Job) (uint64, string) { return 0, j.Namespace },
				"type":      func(j *drover.Job) (uint64, string) { return 0, j.Type },
				"status":    func(j *drover.Job) (uint64, string) { return 0, j.Status },
				"priority":  func(j *drover.Job) (uint64, string) { return uint64(max(j.Priority, 0)), "" },
				"submitted": func(j *drover.Job) (uint64, string) { return uint64(max(j.SubmitTime, 0)), "" },
				"modified":  func(j *drover.Job) (uint64, string) { return j.ModifyIndex, "" },
			},
		},
		View: func(j *drover.Job, s answer.Snapshot) *drover.JobListStub {
			stub := j.Stub(s.JobSummary(j.Namespace, j.ID))
			if meta {
				stub.Meta = j.Meta
			}
			return stub
		},
	}.Serve(f.Cluster, w, r)
}

// jobStatuses answers what Nomad's pages poll: jobs with their live allocations.
func (f *face) jobStatuses(w http.ResponseWriter, r *http.Request) error {
	var b struct {
		Jobs            []drover.NamespacedID
		IncludeChildren bool
	}
	// Nomad's pages send the jobs of interest in a POST; a GET asks for all.
	if r.Method != http.MethodGet {
		if err := httpapi.DecodeOptionalJSON(r, &b); err != nil {
			return err
		}
	}
	children, err := httpapi.BoolParam(r, "include_children", b.IncludeChildren)
	if err != nil {
		return err
	}
	return answer.Lister[*drover.Job, jobStatus]{
		On:    []answer.Source{{Table: tables.Jobs}, {Table: tables.Allocs}, {Table: tables.Deployments}},
		Items: func(q answer.Query, s answer.Snapshot) iter.Seq[*drover.Job] { return s.Jobs(q.Namespace, q.Prefix) },
		Keep: func(j *drover.Job) bool {
			return (children || j.ParentID == "") && (len(b.Jobs) == 0 || slices.Contains(b.Jobs, j.Key()))
		},
		ID:      func(j *drover.Job) string { return j.Namespace + "." + j.ID },
		Created: func(j *drover.Job) uint64 { return j.ModifyIndex },
		View:    viewStatus,
		Sees:    answer.In(policy.ReadJob, namespaceOf),
	}.Serve(f.Cluster, w, r)
}

func namespaceOf(j *drover.Job) string { return j.Namespace }

// jobStatus is one job of the answer to /v1/jobs/statuses. The field names are Nomad's.
type jobStatus struct {
	*drover.JobListStub
	Version       uint64
	GroupCountSum int
	// Allocs is [] rather than null for a job without allocations.
	Allocs           []allocStatus
	LatestDeployment *deploymentStatus
	// ChildStatuses is always null here; Nomad fills it for parents of periodic and parameterized jobs.
	ChildStatuses []string
}

// allocStatus is the part of an allocation from which Nomad's pages draw one square.
type allocStatus struct {
	ID               string
	Group            string
	ClientStatus     string
	NodeID           string
	JobVersion       uint64
	DeploymentStatus *drover.AllocDeploymentStatus
	FollowupEvalID   string
	NextAllocation   string
	// HasPausedTask is always false: tasks cannot be paused.
	HasPausedTask bool
}

// deploymentStatus is the part of the job's newest deployment that these pages show.
type deploymentStatus struct {
	ID                string
	IsActive          bool
	JobVersion        uint64
	Status            string
	StatusDescription string
}

// viewStatus gathers a job's state from one snapshot. The allocations of an earlier job with the same id are left
// out, and a group without a count adds nothing to the sum.
func viewStatus(j *drover.Job, s answer.Snapshot) jobStatus {
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
