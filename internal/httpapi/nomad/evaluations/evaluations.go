package evaluations

import (
	"iter"
	"net/http"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/nomad/allocations"
	"github.com/drover-project/drover/internal/httpapi/nomad/answer"
	"github.com/drover-project/drover/internal/policy"
	"github.com/drover-project/drover/internal/rights"
	"github.com/drover-project/drover/internal/tables"
)

// List lists the evaluations that items yields.
func List(items func(answer.Query, answer.Snapshot) iter.Seq[*drover.Evaluation]) answer.Lister[*drover.Evaluation, *drover.Evaluation] {
	return answer.Lister[*drover.Evaluation, *drover.Evaluation]{
		On:      []answer.Source{{Table: tables.Evals}},
		Items:   items,
		ID:      func(e *drover.Evaluation) string { return e.ID },
		Created: func(e *drover.Evaluation) uint64 { return e.CreateIndex },
		View:    func(e *drover.Evaluation, _ answer.Snapshot) *drover.Evaluation { return e },
		Sees:    seesEvaluation,
	}
}

// seesEvaluation reports whether the caller may read the evaluation.
func seesEvaluation(c *rights.Caller, e *drover.Evaluation) bool {
	return c.Namespace(e.Namespace, policy.ReadJob)
}

// allEvaluations yields those of the query's namespace whose ids have its prefix; listing and counting share it.
func allEvaluations(q answer.Query, s answer.Snapshot) iter.Seq[*drover.Evaluation] {
	return s.Evaluations(q.Namespace, q.Prefix)
}

// listEvaluations answers GET /v1/evaluations; job and status select.
func (f *face) listEvaluations(w http.ResponseWriter, r *http.Request) error {
	job, status := r.URL.Query().Get("job"), r.URL.Query().Get("status")
	l := List(allEvaluations)
	l.Keep = func(e *drover.Evaluation) bool {
		return (job == "" || e.JobID == job) && (status == "" || e.Status == status)
	}
	return l.Serve(f.Cluster, w, r)
}

// countEvaluations answers GET /v1/evaluations/count with how many a filter keeps.
func (f *face) countEvaluations(w http.ResponseWriter, r *http.Request) error {
	q, err := f.ParseQuery(r)
	if err != nil {
		return err
	}
	match, err := answer.Compile[*drover.Evaluation](q.Filter)
	if err != nil {
		return err
	}
	snap, index, err := f.AwaitTable(r.Context(), q, tables.Evals)
	if err != nil {
		return err
	}
	var answer struct{ Count int }
	caller := httpapi.CallerOf(r.Context())
	for e := range allEvaluations(q, snap) {
		if !seesEvaluation(caller, e) {
			continue
		}
		ok, err := match(e)
		if err != nil {
			return err
		}
		if ok {
			answer.Count++
		}
	}
	f.SetIndex(w, index)
	return httpapi.WriteJSON(w, r, http.StatusOK, answer)
}

// readEvaluation answers GET /v1/evaluation/ID; related=true adds those before and after it.
func (f *face) readEvaluation(w http.ResponseWriter, r *http.Request) error {
	related, err := httpapi.BoolParam(r, "related", false)
	if err != nil {
		return err
	}
	id, caller := r.PathValue("id"), httpapi.CallerOf(r.Context())
	if e := f.State.Snapshot().Evaluation(id); e != nil && !seesEvaluation(caller, e) {
		return httpapi.ErrDenied // as Nomad: the id alone tells nothing
	}
	find := func(_ answer.Query, s answer.Snapshot) (*drover.Evaluation, uint64) {
		e := s.Evaluation(id)
		if e == nil || !seesEvaluation(caller, e) {
			return nil, 0
		}
		if !related {
			return e, e.ModifyIndex
		}
		withRelated := *e
		withRelated.RelatedEvals = relatives(s, e)
		return &withRelated, e.ModifyIndex
	}
	return answer.Single(f.Cluster, w, r, answer.Source{Table: tables.Evals, Key: id}, "eval", find)
}

// relatives are the evaluations before and after e: previous, next and blocked ones, and theirs.
func relatives(s answer.Snapshot, e *drover.Evaluation) []*drover.EvaluationStub {
	seen := map[string]bool{e.ID: true}
	stubs := []*drover.EvaluationStub{}
	// The links may form a circle, hence seen.
	for todo := []*drover.Evaluation{e}; len(todo) > 0; todo = todo[1:] {
		for _, id := range []string{todo[0].PreviousEval, todo[0].NextEval, todo[0].BlockedEval} {
			if id == "" || seen[id] {
				continue
			}
			seen[id] = true
			if next := s.Evaluation(id); next != nil {
				stubs = append(stubs, next.Stub())
				todo = append(todo, next)
			}
		}
	}
	return stubs
}

// deleteEvaluations forgets those that are named, or that match a filter.
func (f *face) deleteEvaluations(w http.ResponseWriter, r *http.Request) error {
	var b struct {
		EvalIDs []string
		Filter  string
	}
	if err := httpapi.DecodeJSON(r, &b); err != nil {
		return err
	}
	// A request that names nothing must not match everything.
	if len(b.EvalIDs) > 0 == (b.Filter != "") {
		return drover.Errorf(drover.Invalid, "evals must be deleted by either EvalIDs or Filter")
	}
	if b.Filter != "" {
		match, err := answer.Compile[*drover.Evaluation](b.Filter)
		if err != nil {
			return err
		}
		for e := range f.State.Snapshot().Evaluations(answer.Namespace(r), "") {
			ok, err := match(e)
			if err != nil {
				return err
			}
			// Those still to be worked on are skipped: a filter may match them by accident, and the intake would
			// refuse the whole request.
			if ok && e.Terminal() {
				b.EvalIDs = append(b.EvalIDs, e.ID)
			}
		}
	}
	o, err := f.Intake.DeleteEvaluations(r.Context(), b.EvalIDs)
	if err != nil {
		return err
	}
	return f.Written(w, r, o, struct{ Count int }{len(b.EvalIDs)})
}

// evaluationAllocations answers GET /v1/evaluation/ID/allocations.
func (f *face) evaluationAllocations(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	return allocations.Stubs(func(_ answer.Query, s answer.Snapshot) iter.Seq[*drover.Allocation] {
		return s.AllocationsByEval(id)
	}, true).Serve(f.Cluster, w, r)
}
