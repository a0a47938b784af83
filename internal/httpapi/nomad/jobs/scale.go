package jobs

import (
	"math"
	"net/http"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/nomad/answer"
	"github.com/drover-project/drover/internal/policy"
	"github.com/drover-project/drover/internal/tables"
)

// scaleJob answers PUT /v1/job/ID/scale: a group gets another count, or an event about its scaling is noted.
func (f *face) scaleJob(w http.ResponseWriter, r *http.Request, id string) error {
	var b struct {
		Count          *int64
		Target         map[string]string
		Message        string
		Error          bool
		Meta           map[string]any
		JobModifyIndex uint64
	}
	if err := httpapi.DecodeJSON(r, &b); err != nil {
		return err
	}
	namespace, group := b.Target["Namespace"], b.Target["Group"]
	if namespace == "" {
		namespace = answer.Namespace(r)
	}
	if err := httpapi.Allow(r.Context(), namespace, policy.ScaleJob); err != nil {
		return err
	}
	if job := b.Target["Job"]; job != "" && job != id {
		return drover.Errorf(drover.Invalid, "job ID in payload did not match URL")
	}
	if group == "" {
		return drover.Errorf(drover.Invalid, "missing task group name for scaling action")
	}
	req := drover.ScaleRequest{
		Namespace: namespace, ID: id, Group: group, Message: b.Message, Error: b.Error, Meta: b.Meta,
		JobModifyIndex: b.JobModifyIndex,
	}
	if b.Count != nil {
		if *b.Count < 0 || *b.Count > math.MaxInt32 {
			return drover.Errorf(drover.Invalid, "Count: %d is not from 0 to %d", *b.Count, math.MaxInt32)
		}
		if b.Error {
			return drover.Errorf(drover.Invalid, "scaling action should not contain count if error is true")
		}
		req.Count = new(int(*b.Count))
	}
	o, err := f.Intake.ScaleJob(r.Context(), req)
	if err != nil {
		return err
	}
	return f.Written(w, r, o, evalAnswer(o))
}

// groupScale counts the live allocations of one group. An allocation whose health is not known yet counts neither
// as healthy nor as unhealthy.
type groupScale struct {
	Desired, Placed, Running, Healthy, Unhealthy int
	Events                                       []*drover.ScalingEvent // the newest first
}

// scaleState is the answer of /v1/job/ID/scale. Its shape is Nomad's; autoscalers read it before they change a
// count.
type scaleState struct {
	JobID          string
	Namespace      string
	JobCreateIndex uint64
	JobModifyIndex uint64
	JobStopped     bool
	TaskGroups     map[string]*groupScale
}

// scaleStatus answers GET /v1/job/ID/scale with the counts of each group and the events about its scaling.
func (f *face) scaleStatus(w http.ResponseWriter, r *http.Request, id string) error {
	find := func(q answer.Query, s answer.Snapshot) (*scaleState, uint64) {
		job := s.Job(q.Namespace, id)
		if job == nil {
			return nil, 0
		}
		// The allocations of one job have no index of their own. That of their table moves more often, so that a
		// blocking query may return without a change.
		state, index := scaleOf(s, job), max(job.ModifyIndex, s.TableIndex(tables.Allocs))
		if e := s.ScalingEvents(job.Namespace, job.ID); e != nil {
			index = max(index, e.ModifyIndex)
			for group, list := range e.ScalingEvents {
				if scale := state.TaskGroups[group]; scale != nil {
					scale.Events = list
				}
			}
		}
		return state, index
	}
	return answer.Single(f.Cluster, w, r, answer.Source{Table: tables.Jobs}, "job", find)
}

// scaleOf counts from one snapshot. Every group of the job has an entry, also without allocations. Those of groups
// that the job no longer has, and those of an earlier job of the same id, are not counted.
func scaleOf(s answer.Snapshot, job *drover.Job) *scaleState {
	state := &scaleState{
		JobID: job.ID, Namespace: job.Namespace, JobCreateIndex: job.CreateIndex, JobModifyIndex: job.ModifyIndex,
		JobStopped: job.Stop, TaskGroups: map[string]*groupScale{},
	}
	for _, g := range job.TaskGroups {
		scale := &groupScale{Events: []*drover.ScalingEvent{}}
		if g.Count != nil {
			scale.Desired = *g.Count
		}
		state.TaskGroups[g.Name] = scale
	}
	for a := range allocationsOf(s, job.Namespace, job.ID, false) {
		scale := state.TaskGroups[a.TaskGroup]
		if scale == nil || a.Terminal() {
			continue
		}
		scale.Placed++
		if a.ClientStatus == drover.AllocClientRunning {
			scale.Running++
		}
		// Healthy is nil until the deployment watcher has decided.
		if d := a.DeploymentStatus; d != nil && d.Healthy != nil {
			if *d.Healthy {
				scale.Healthy++
			} else {
				scale.Unhealthy++
			}
		}
	}
	return state
}
