package nomad

import (
	"iter"
	"math"
	"net/http"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/tables"
)

func (f *Face) scaleJob(w http.ResponseWriter, r *http.Request, id string) error {
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
		namespace = namespaceOf(r)
	}
	if job := b.Target["Job"]; job != "" && job != id {
		return drover.Errorf(drover.Invalid, "job ID in payload did not match URL")
	}
	if group == "" {
		return drover.Errorf(drover.Invalid, "missing task group name for scaling action")
	}
	req := drover.ScaleRequest{Namespace: namespace, ID: id, Group: group, Message: b.Message, Error: b.Error, Meta: b.Meta, JobModifyIndex: b.JobModifyIndex}
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
	return f.written(w, r, o, evalAnswer(o))
}

type groupScale struct {
	Desired, Placed, Running, Healthy, Unhealthy int
	Events                                       []*drover.ScalingEvent // the newest first
}

type scaleState struct {
	JobID          string
	Namespace      string
	JobCreateIndex uint64
	JobModifyIndex uint64
	JobStopped     bool
	TaskGroups     map[string]*groupScale
}

func (f *Face) scaleStatus(w http.ResponseWriter, r *http.Request, id string) error {
	return single(f, w, r, source{table: tables.Jobs}, "job", func(q query, s Snapshot) (*scaleState, uint64) {
		job := s.Job(q.namespace, id)
		if job == nil {
			return nil, 0
		}
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
	})
}

func scaleOf(s Snapshot, job *drover.Job) *scaleState {
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

// scalingPolicies are derived from the groups that have a scaling block; a policy's id is namespace/job/group.
func scalingPolicies(q query, s Snapshot) iter.Seq[*drover.ScalingPolicy] {
	return func(yield func(*drover.ScalingPolicy) bool) {
		for j := range s.Jobs(q.namespace, "") {
			if j.Stop {
				continue
			}
			for _, g := range j.TaskGroups {
				if g.Scaling != nil && !yield(policyOf(j, g)) {
					return
				}
			}
		}
	}
}

func policyOf(j *drover.Job, g *drover.TaskGroup) *drover.ScalingPolicy {
	p := *g.Scaling
	p.ID, p.Namespace = j.Namespace+"/"+j.ID+"/"+g.Name, j.Namespace
	p.Target = map[string]string{"Namespace": j.Namespace, "Job": j.ID, "Group": g.Name}
	p.CreateIndex, p.ModifyIndex = j.CreateIndex, j.JobModifyIndex
	if p.Type == "" {
		p.Type = "horizontal"
	}
	return &p
}

func (f *Face) listScalingPolicies(w http.ResponseWriter, r *http.Request) error {
	type stub struct {
		ID          string
		Enabled     bool
		Type        string
		Target      map[string]string
		CreateIndex uint64
		ModifyIndex uint64
	}
	job, kind := r.URL.Query().Get("job"), r.URL.Query().Get("type")
	return lister[*drover.ScalingPolicy, stub]{
		on:    []source{{table: tables.Jobs}},
		items: scalingPolicies,
		keep: func(p *drover.ScalingPolicy) bool {
			return (job == "" || p.Target["Job"] == job) && (kind == "" || p.Type == kind)
		},
		id: func(p *drover.ScalingPolicy) string { return p.ID },
		view: func(p *drover.ScalingPolicy, _ Snapshot) stub {
			return stub{p.ID, p.Enabled == nil || *p.Enabled, p.Type, p.Target, p.CreateIndex, p.ModifyIndex}
		},
	}.serve(f, w, r)
}

func (f *Face) readScalingPolicy(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	return single(f, w, r, source{table: tables.Jobs}, "policy", func(_ query, s Snapshot) (*drover.ScalingPolicy, uint64) {
		for p := range scalingPolicies(query{namespace: "*"}, s) {
			if p.ID == id {
				return p, p.ModifyIndex
			}
		}
		return nil, 0
	})
}
