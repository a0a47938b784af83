package nomad_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/drover-project/drover"
	clusternoun "github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/admission"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/deepcopy"
	"github.com/drover-project/drover/jobdiff"
	"github.com/drover-project/drover/tenancy"
)

// fakeIntake registers and stops jobs in the store; the rest it only remembers.
type fakeIntake struct {
	store *store.Store
	mu    sync.Mutex
	calls []string
}

func (i *fakeIntake) took(format string, args ...any) (drover.Outcome, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.calls = append(i.calls, fmt.Sprintf(format, args...))
	return drover.Outcome{
		Index: 77, EvalID: evalID, EvalIDs: []string{evalID}, EvalCreateIndex: 77, JobModifyIndex: 77,
		NodeModifyIndex: 77, DeploymentModifyIndex: 77,
	}, nil
}

func (i *fakeIntake) has(call string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Contains(i.calls, call)
}

func (i *fakeIntake) RegisterJob(_ context.Context, r drover.RegisterRequest) (drover.Outcome, error) {
	job := deepcopy.Of(r.Job)
	job.Canonicalize()
	if err := job.Validate(); err != nil {
		return drover.Outcome{}, err
	}
	if old := i.store.Snapshot().Job(job.Namespace, job.ID); r.EnforceIndex && old != nil && old.JobModifyIndex != r.JobModifyIndex {
		return drover.Outcome{}, drover.Errorf(drover.Conflict,
			"Enforcing job modify index %d: job exists with conflicting job modify index: %d", r.JobModifyIndex, old.JobModifyIndex)
	}
	index := put(i.store, func(t *store.Txn) {
		at := i.store.Index() + 1
		job.CreateIndex, job.ModifyIndex, job.JobModifyIndex, job.Status = at, at, at, drover.JobStatusPending
		t.PutJob(job)
		t.PutEvaluation(&drover.Evaluation{
			ID: evalID[:35] + "2", Namespace: job.Namespace, JobID: job.ID, CreateIndex: at,
			ModifyIndex: at, Status: drover.EvalPending,
		})
	})
	return drover.Outcome{Index: index, EvalID: evalID[:35] + "2", EvalCreateIndex: index, JobModifyIndex: index}, nil
}

func (i *fakeIntake) DeregisterJob(_ context.Context, r drover.DeregisterRequest) (drover.Outcome, error) {
	job := i.store.Snapshot().Job(r.Namespace, r.ID)
	if job == nil {
		return drover.Outcome{}, drover.Errorf(drover.NotFound, "job not found")
	}
	index := put(i.store, func(t *store.Txn) {
		if r.Purge {
			t.DeleteJob(job)
			return
		}
		stopped := *job
		stopped.Stop, stopped.ModifyIndex = true, i.store.Index()+1
		t.PutJob(&stopped)
	})
	return drover.Outcome{Index: index, EvalID: evalID, EvalCreateIndex: index, JobModifyIndex: index}, nil
}

func (i *fakeIntake) PlanJob(_ context.Context, job *drover.Job, diff bool) (drover.Preview, error) {
	_, err := i.took("plan %s %t", job.ID, diff)
	updates := map[string]*drover.DesiredUpdates{"g": {Place: 1}}
	p := drover.Preview{JobModifyIndex: 10, Annotations: &drover.PlanAnnotations{DesiredTGUpdates: updates}}
	p.Placements = []drover.PlannedPlacement{{Group: "g", NodeID: nodeID, NodeName: "one", Count: 1}}
	if diff {
		p.Diff = &jobdiff.Job{Type: jobdiff.Added, ID: job.ID}
	}
	return p, err
}

func (i *fakeIntake) EvaluateJob(_ context.Context, ns, id string, force bool) (drover.Outcome, error) {
	return i.took("evaluate %s/%s %t", ns, id, force)
}

func (i *fakeIntake) ScaleJob(_ context.Context, r drover.ScaleRequest) (drover.Outcome, error) {
	count := -1
	if r.Count != nil {
		count = *r.Count
	}
	return i.took("scale %s/%s %s %d %s", r.Namespace, r.ID, r.Group, count, r.Message)
}

func (i *fakeIntake) RevertJob(_ context.Context, r drover.RevertRequest) (drover.Outcome, error) {
	return i.took("revert %s/%s %d", r.Namespace, r.ID, r.Version)
}

func (i *fakeIntake) SetJobStable(_ context.Context, ns, id string, v uint64, stable bool) (drover.Outcome, error) {
	return i.took("stable %s/%s %d %t", ns, id, v, stable)
}

func (i *fakeIntake) DispatchJob(_ context.Context, r drover.DispatchRequest) (drover.Outcome, error) {
	o, err := i.took("dispatch %s/%s %s %v %s", r.Namespace, r.ID, r.Payload, r.Meta, r.IdempotencyToken)
	o.DispatchedJobID = r.ID + "/dispatch-1-abc"
	return o, err
}

func (i *fakeIntake) ForcePeriodic(_ context.Context, ns, id string) (drover.Outcome, error) {
	return i.took("force %s/%s", ns, id)
}

func (i *fakeIntake) StopAllocation(_ context.Context, id string, noDelay, reschedule bool) (drover.Outcome, error) {
	return i.took("stop %s %t %t", id, noDelay, reschedule)
}

func (i *fakeIntake) SetEligibility(_ context.Context, node, e string) (drover.Outcome, error) {
	return i.took("eligibility %s %s", node, e)
}

func (i *fakeIntake) DrainNode(_ context.Context, r drover.DrainRequest) (drover.Outcome, error) {
	return i.took("drain %s %v %t", r.NodeID, r.Spec, r.MarkEligible)
}

func (i *fakeIntake) EvaluateNode(_ context.Context, node string) (drover.Outcome, error) {
	return i.took("evaluate node %s", node)
}

func (i *fakeIntake) PurgeNode(_ context.Context, node string) (drover.Outcome, error) {
	return i.took("purge node %s", node)
}

func (i *fakeIntake) ValidateJob(_ context.Context, j *drover.Job) error {
	j.Canonicalize()
	return j.Validate()
}

func (i *fakeIntake) TagJobVersion(_ context.Context, r drover.TagRequest) (drover.Outcome, error) {
	return i.took("tag %s/%s %d %s %s", r.Namespace, r.ID, r.Version, r.Name, r.Description)
}

func (i *fakeIntake) UntagJobVersion(_ context.Context, ns, id, name string) (drover.Outcome, error) {
	return i.took("untag %s/%s %s", ns, id, name)
}

func (i *fakeIntake) DeleteEvaluations(_ context.Context, ids []string) (drover.Outcome, error) {
	return i.took("delete evaluations %v", ids)
}

func (i *fakeIntake) SetNodeMeta(_ context.Context, id string, change map[string]*string) (drover.Outcome, error) {
	n := deepcopy.Of(i.store.Snapshot().Node(id))
	n.MergeMeta(n.OwnMeta(), change)
	return drover.Outcome{Index: put(i.store, func(t *store.Txn) { t.PutNode(n) })}, nil
}

func (i *fakeIntake) UpsertNamespace(_ context.Context, n *tenancy.Namespace) (drover.Outcome, error) {
	index := put(i.store, func(t *store.Txn) { t.PutNamespace(n) })
	return drover.Outcome{Index: index}, nil
}

func (i *fakeIntake) UpsertQuota(_ context.Context, q *tenancy.QuotaSpec) (drover.Outcome, error) {
	index := put(i.store, func(t *store.Txn) { t.PutQuota(q) })
	return drover.Outcome{Index: index}, nil
}

func (i *fakeIntake) DeleteQuota(_ context.Context, name string) (drover.Outcome, error) {
	return i.took("delete quota %s", name)
}

func (i *fakeIntake) UpsertAdmissionRule(_ context.Context, r *drover.AdmissionRule) (drover.Outcome, error) {
	if err := admission.Complete(r); err != nil {
		return drover.Outcome{}, err
	}
	index := put(i.store, func(t *store.Txn) { t.PutAdmissionRule(r) })
	return drover.Outcome{Index: index}, nil
}

func (i *fakeIntake) RevokeCertificate(_ context.Context, q clusternoun.RevokeRequest) (*clusternoun.Revocation, drover.Outcome, error) {
	r, err := q.Revocation(time.Unix(1_800_000_000, 0))
	if err != nil {
		return nil, drover.Outcome{}, err
	}
	index := put(i.store, func(t *store.Txn) { t.PutRevocation(r) })
	return r, drover.Outcome{Index: index}, nil
}

func (i *fakeIntake) ReinstateCertificate(_ context.Context, id string) (drover.Outcome, error) {
	return i.took("reinstate %s", id)
}

func (i *fakeIntake) DeleteAdmissionRule(_ context.Context, name string) (drover.Outcome, error) {
	return i.took("delete admission rule %s", name)
}

func (i *fakeIntake) TestAdmission(_ context.Context, j *drover.Job) ([]drover.AdmissionVerdict, error) {
	return admission.Compile(slices.Collect(i.store.Snapshot().AdmissionRules()), nil).Judge(j, nil, nil), nil
}

func (i *fakeIntake) DeleteNamespace(_ context.Context, name string) (drover.Outcome, error) {
	return i.took("delete namespace %s", name)
}

func (i *fakeIntake) UpsertNodePool(_ context.Context, p *drover.NodePool) (drover.Outcome, error) {
	index := put(i.store, func(t *store.Txn) { t.PutNodePool(p) })
	return drover.Outcome{Index: index}, nil
}

func (i *fakeIntake) DeleteNodePool(_ context.Context, name string) (drover.Outcome, error) {
	return i.took("delete pool %s", name)
}

func (i *fakeIntake) SetSchedulerConfig(_ context.Context, c drover.SchedulerConfiguration, cas bool) (bool, drover.Outcome, error) {
	o, err := i.took("scheduler %s %t %d", c.SchedulerAlgorithm, cas, c.ModifyIndex)
	return !cas, o, err
}

func (i *fakeIntake) PromoteDeployment(_ context.Context, id string, groups []string) (drover.Outcome, error) {
	return i.took("promote %s %v", id, groups)
}

func (i *fakeIntake) FailDeployment(_ context.Context, id string) (drover.Outcome, error) {
	return i.took("fail %s", id)
}

func (i *fakeIntake) PauseDeployment(_ context.Context, id string, pause bool) (drover.Outcome, error) {
	return i.took("pause %s %t", id, pause)
}

func (i *fakeIntake) UnblockDeployment(_ context.Context, id string) (drover.Outcome, error) {
	return i.took("unblock %s", id)
}

func (i *fakeIntake) SetAllocHealth(_ context.Context, id string, h, u []string) (drover.Outcome, error) {
	return i.took("health %s %v %v", id, h, u)
}
func (i *fakeIntake) CollectGarbage(context.Context) error { _, err := i.took("gc"); return err }
func (i *fakeIntake) ReconcileSummaries(context.Context) error {
	_, err := i.took("reconcile")
	return err
}
