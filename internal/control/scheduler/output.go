package scheduler

import (
	"time"

	"github.com/drover-project/drover"
)

// output gathers the answer.
func (r *run) output() Output {
	r.deployments.finish(r)
	r.nameEvicted()
	for i := range r.groups {
		r.groups[i].Sentence = sentence(r.groups[i])
	}
	r.plan.Annotations = &drover.PlanAnnotations{DesiredTGUpdates: r.annotations}
	e := new(*r.in.Eval)
	e.Status, e.StatusDescription = drover.EvalComplete, r.slowed
	e.SnapshotIndex = r.snapshot.Index()
	e.ModifyTime = r.now.UnixNano()
	e.FailedTGAllocs, e.QueuedAllocations, e.BlockedEval = nil, r.queued, ""
	e.DeploymentID = r.deployments.id()
	if e.AnnotatePlan {
		e.PlanAnnotations = r.plan.Annotations
	}
	news := r.followUps
	if len(r.failed) > 0 {
		e.FailedTGAllocs = r.failed
		classes, escaped := r.eligibility()
		if r.in.Eval.Status == drover.EvalBlocked {
			e.Status, e.StatusDescription = drover.EvalBlocked, blockedDescription
			e.ClassEligibility, e.EscapedComputedClass = classes, escaped
		} else {
			b := Blocked(r.in.Eval, r.ids.New(), drover.TriggerQueuedAllocs, r.now)
			b.ClassEligibility, b.EscapedComputedClass, b.SnapshotIndex = classes, escaped, r.snapshot.Index()
			e.BlockedEval = b.ID
			news = append(news, b)
		}
	}
	return Output{Plan: r.plan, Eval: e, NewEvals: news, Explanation: Explanation{Groups: r.groups}}
}

const blockedDescription = "created to place remaining allocations"

// Blocked returns the evaluation that waits for capacity on behalf of e; trigger is queued-allocs, or
// max-plan-attempts when the planner refused too often. Without classes it wakes on anything.
func Blocked(e *drover.Evaluation, id, trigger string, now time.Time) *drover.Evaluation {
	b := next(e, id, trigger, now)
	b.Status, b.StatusDescription = drover.EvalBlocked, blockedDescription
	b.EscapedComputedClass = true
	return b
}

// next returns a pending evaluation of the same job that follows e.
func next(e *drover.Evaluation, id, trigger string, now time.Time) *drover.Evaluation {
	return &drover.Evaluation{
		ID: id, Namespace: e.Namespace, JobID: e.JobID, JobModifyIndex: e.JobModifyIndex, Priority: e.Priority,
		Type: e.Type, TriggeredBy: trigger, Status: drover.EvalPending, PreviousEval: e.ID,
		CreateTime: now.UnixNano(), ModifyTime: now.UnixNano(),
	}
}

// wake asks for another look at a time and returns that evaluation's id. If the job has one pending for about then,
// or one in this plan, that is enough.
func (r *run) wake(at time.Time, trigger, why string) string {
	serves := func(e *drover.Evaluation) bool {
		early := at.Sub(e.WaitUntil)
		return early >= 0 && early <= followUpWindow
	}
	for e := range r.snapshot.EvaluationsByJob(r.in.Eval.Namespace, r.in.Eval.JobID) {
		if e.ID != r.in.Eval.ID && e.Status == drover.EvalPending && e.WaitUntil.After(r.now) && serves(e) {
			return e.ID
		}
	}
	for _, e := range r.followUps {
		if e.JobID == r.in.Eval.JobID && serves(e) {
			return e.ID
		}
	}
	e := next(r.in.Eval, r.ids.New(), trigger, r.now)
	e.WaitUntil, e.StatusDescription = at, why
	r.followUps = append(r.followUps, e)
	return e.ID
}

// eligibility says which classes may ever take what was not placed.
func (r *run) eligibility() (map[string]bool, bool) {
	classes, escaped := map[string]bool{}, false
	for _, b := range r.boards {
		if r.failed[b.group.Name] != nil {
			b.feasible.eligibility(b.stage.classes, classes)
			escaped = escaped || b.feasible.escaped
		}
	}
	return classes, escaped
}

// stop marks an allocation to be stopped; client is the new client status, "" to leave it to the node.
func (r *run) stop(a *drover.Allocation, why, client string) {
	s := new(*a)
	s.DesiredStatus, s.DesiredDescription = drover.AllocDesiredStop, why
	s.ModifyTime = r.now.UnixNano()
	if client != "" {
		s.ClientStatus, s.ClientDescription = client, why
	}
	r.plan.NodeUpdate[a.NodeID] = append(r.plan.NodeUpdate[a.NodeID], s)
}

// await records which evaluation will replace an allocation that failed. It stays wanted: an update that does not stop.
func (r *run) await(a *drover.Allocation, followUp string) {
	if a.FollowupEvalID == followUp {
		return
	}
	s := new(*a)
	s.FollowupEvalID, s.ModifyTime = followUp, r.now.UnixNano()
	r.plan.NodeUpdate[a.NodeID] = append(r.plan.NodeUpdate[a.NodeID], s)
}

// Why an allocation is stopped, in Nomad's words.
const (
	whyNotNeeded   = "alloc not needed due to job update"
	whyLost        = "alloc is lost since its node is down"
	whyMigrating   = "alloc is being migrated"
	whyUpdating    = "alloc is being updated due to job update"
	whyRescheduled = "alloc was rescheduled because it failed"
	whyReconnected = "alloc not needed due to disconnected client reconnect"
	whyNotOnNode   = "alloc not needed as node is tainted"
)

// end stops an allocation, or marks it lost if its node is.
func (r *run) end(a *drover.Allocation, why string) {
	if r.lost(a.NodeID) {
		r.stop(a, whyLost, drover.AllocClientLost)
	} else {
		r.stop(a, why, "")
	}
}

// stopAll ends all that the job has.
func (r *run) stopAll() {
	r.deployments.load(r)
	r.deployments.cancelActive("Cancelled because job is stopped")
	if r.job != nil {
		for _, g := range r.job.TaskGroups {
			r.queued[g.Name] = 0
		}
	}
	for a := range r.allocations() {
		if a.ClientTerminal() {
			continue
		}
		if !a.ServerTerminal() || r.lost(a.NodeID) {
			r.end(a, whyNotNeeded)
			r.updates(a.TaskGroup).Stop++
		}
	}
}
