package nomad

import (
	"iter"
	"net/http"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/tables"
)

func evaluationLister(items func(query, Snapshot) iter.Seq[*drover.Evaluation]) lister[*drover.Evaluation, *drover.Evaluation] {
	return lister[*drover.Evaluation, *drover.Evaluation]{
		on:      []source{{table: tables.Evals}},
		items:   items,
		id:      func(e *drover.Evaluation) string { return e.ID },
		created: func(e *drover.Evaluation) uint64 { return e.CreateIndex },
		view:    func(e *drover.Evaluation, _ Snapshot) *drover.Evaluation { return e },
	}
}

func allEvaluations(q query, s Snapshot) iter.Seq[*drover.Evaluation] {
	return s.Evaluations(q.namespace, q.prefix)
}

func (f *Face) listEvaluations(w http.ResponseWriter, r *http.Request) error {
	job, status := r.URL.Query().Get("job"), r.URL.Query().Get("status")
	l := evaluationLister(allEvaluations)
	l.keep = func(e *drover.Evaluation) bool {
		return (job == "" || e.JobID == job) && (status == "" || e.Status == status)
	}
	return l.serve(f, w, r)
}

func (f *Face) countEvaluations(w http.ResponseWriter, r *http.Request) error {
	q, err := f.parseQuery(r)
	if err != nil {
		return err
	}
	match, err := compile[*drover.Evaluation](q.filter)
	if err != nil {
		return err
	}
	snap, index, err := f.await(r.Context(), q, []source{{table: tables.Evals}}, func(s Snapshot) uint64 { return s.TableIndex(tables.Evals) })
	if err != nil {
		return err
	}
	var answer struct{ Count int }
	for e := range allEvaluations(q, snap) {
		ok, err := match(e)
		if err != nil {
			return err
		}
		if ok {
			answer.Count++
		}
	}
	f.setIndex(w, index)
	return httpapi.WriteJSON(w, r, http.StatusOK, answer)
}

func (f *Face) readEvaluation(w http.ResponseWriter, r *http.Request) error {
	related, err := httpapi.BoolParam(r, "related", false)
	if err != nil {
		return err
	}
	id := r.PathValue("id")
	return single(f, w, r, source{table: tables.Evals, key: id}, "eval", func(_ query, s Snapshot) (*drover.Evaluation, uint64) {
		e := s.Evaluation(id)
		if e == nil {
			return nil, 0
		}
		if !related {
			return e, e.ModifyIndex
		}
		withRelated := *e
		withRelated.RelatedEvals = relatives(s, e)
		return &withRelated, e.ModifyIndex
	})
}

// relatives are the evaluations before and after e: previous, next and blocked ones, and theirs.
func relatives(s Snapshot, e *drover.Evaluation) []*drover.EvaluationStub {
	seen := map[string]bool{e.ID: true}
	stubs := []*drover.EvaluationStub{}
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
func (f *Face) deleteEvaluations(w http.ResponseWriter, r *http.Request) error {
	var b struct {
		EvalIDs []string
		Filter  string
	}
	if err := httpapi.DecodeJSON(r, &b); err != nil {
		return err
	}
	if len(b.EvalIDs) > 0 == (b.Filter != "") {
		return drover.Errorf(drover.Invalid, "evals must be deleted by either EvalIDs or Filter")
	}
	if b.Filter != "" {
		match, err := compile[*drover.Evaluation](b.Filter)
		if err != nil {
			return err
		}
		for e := range f.State.Snapshot().Evaluations(namespaceOf(r), "") {
			ok, err := match(e)
			if err != nil {
				return err
			}
			if ok && e.Terminal() {
				b.EvalIDs = append(b.EvalIDs, e.ID)
			}
		}
	}
	o, err := f.Intake.DeleteEvaluations(r.Context(), b.EvalIDs)
	if err != nil {
		return err
	}
	return f.written(w, r, o, struct{ Count int }{len(b.EvalIDs)})
}

func (f *Face) evaluationAllocations(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	return stubLister(func(_ query, s Snapshot) iter.Seq[*drover.Allocation] { return s.AllocationsByEval(id) }, true).serve(f, w, r)
}
