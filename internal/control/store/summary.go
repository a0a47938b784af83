package store

import (
	"maps"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/tables"
)

// JobRow is what is kept incrementally of a job, whether it is still registered or only its allocations are left. It
// is exported for the snapshot on disk: a summary remembers allocations that were forgotten.
type JobRow struct {
	Summary   drover.JobSummary
	Live      int // allocations that are not terminal
	Allocs    int
	OpenEvals int // evaluations that are not terminal
	Evals     int
	Quick     drover.QuickEnds

	allocs split // closed: those that both sides are done with; not in the snapshot on disk
}

// JobCounts is what the job's status derives from.
type JobCounts struct {
	Live      int // allocations that neither ended nor should
	Allocs    int
	OpenEvals int
	Evals     int
}

// JobSummary returns the job's summary, or nil if the job is unknown. The result is shared: do not change it.
func (r *reader) JobSummary(namespace, id string) *drover.JobSummary {
	row := get[JobRow](r, tables.JobSummaries, jobPrefix(namespace, id))
	if row == nil || row.Summary.CreateIndex == 0 || r.Job(namespace, id) == nil {
		return nil
	}
	return &row.Summary
}

// JobCounts returns how many allocations and evaluations the job has, inside the transaction.
func (t *Txn) JobCounts(namespace, id string) JobCounts {
	r := t.jobs[drover.NamespacedID{Namespace: namespace, ID: id}]
	if r == nil {
		r = get[JobRow](&t.reader, tables.JobSummaries, jobPrefix(namespace, id))
	}
	if r == nil {
		return JobCounts{}
	}
	return JobCounts{r.Live, r.Allocs, r.OpenEvals, r.Evals}
}

// QuickEnds returns how many of the job's allocations ended at once, one after the other.
func (r *reader) QuickEnds(namespace, id string) drover.QuickEnds {
	if row := get[JobRow](r, tables.JobSummaries, jobPrefix(namespace, id)); row != nil {
		return row.Quick
	}
	return drover.QuickEnds{}
}

// CountQuickEnd notes that one of the job's allocations ended at once.
func (t *Txn) CountQuickEnd(namespace, id string, at int64) {
	q := &t.jobRow(namespace, id).Quick
	if at-q.Last > int64(drover.QuickEndMemory) {
		q.Count = 0
	}
	q.Count++
	q.Last = max(q.Last, at)
}

// ForgetQuickEnds begins anew: the job was changed by somebody.
func (t *Txn) ForgetQuickEnds(namespace, id string) {
	t.jobRow(namespace, id).Quick = drover.QuickEnds{}
}

// TouchedJobs returns the jobs whose counts this transaction changed, in no order.
func (t *Txn) TouchedJobs() []drover.NamespacedID {
	out := make([]drover.NamespacedID, 0, len(t.jobs))
	for k := range t.jobs {
		out = append(out, k)
	}
	return out
}

// Children returns the summary's counts of child jobs, inside the transaction.
func (t *Txn) Children(namespace, id string) drover.JobChildrenSummary {
	if c := t.jobRow(namespace, id).Summary.Children; c != nil {
		return *c
	}
	return drover.JobChildrenSummary{}
}

// PutChildren sets the summary's counts of child jobs.
func (t *Txn) PutChildren(namespace, id string, c drover.JobChildrenSummary) {
	r := t.jobRow(namespace, id)
	r.Summary.Children = &c
	r.Summary.ModifyIndex = t.index
	t.touch(tables.JobSummaries, tables.JobKey(namespace, id))
}

// jobRow returns the transaction's own copy of the job's row.
func (t *Txn) jobRow(namespace, id string) *JobRow {
	key := drover.NamespacedID{Namespace: namespace, ID: id}
	if r := t.jobs[key]; r != nil {
		return r
	}
	r := &JobRow{Summary: drover.JobSummary{JobID: id, Namespace: namespace}}
	if old := get[JobRow](&t.reader, tables.JobSummaries, jobPrefix(namespace, id)); old != nil {
		*r = *old
		r.allocs = old.allocs.fork()
	}
	r.Summary.Summary = maps.Clone(r.Summary.Summary)
	if r.Summary.Summary == nil {
		r.Summary.Summary = map[string]drover.TaskGroupSummary{}
	}
	t.jobs[key] = r
	return r
}

// dropIfUnused removes the row when nothing of the job is left.
func (t *Txn) dropIfUnused(r *JobRow) {
	key := drover.NamespacedID{Namespace: r.Summary.Namespace, ID: r.Summary.JobID}
	if r.Allocs > 0 || r.Evals > 0 || t.Job(key.Namespace, key.ID) != nil {
		return
	}
	delete(t.jobs, key)
	if old := get[JobRow](&t.reader, tables.JobSummaries, jobPrefix(key.Namespace, key.ID)); old != nil {
		t.remove(tables.JobSummaries, old)
	}
}

// addGroups makes the summary have every group of the job.
func (r *JobRow) addGroups(j *drover.Job, index uint64) {
	if r.Summary.CreateIndex == 0 {
		r.Summary.CreateIndex, r.Summary.ModifyIndex = index, index
	}
	if r.Summary.Children == nil { // Nomad's clients find counts of children at every job
		r.Summary.Children = &drover.JobChildrenSummary{}
	}
	for _, g := range j.TaskGroups {
		if _, ok := r.Summary.Summary[g.Name]; !ok {
			r.Summary.Summary[g.Name] = drover.TaskGroupSummary{}
			r.Summary.ModifyIndex = index
		}
	}
}

func (r *JobRow) countEval(old, e *drover.Evaluation) {
	if old != nil {
		r.Evals--
		r.OpenEvals -= one(!old.Terminal())
	}
	if e == nil {
		return
	}
	r.Evals++
	r.OpenEvals += one(!e.Terminal())
	if e.Status == drover.EvalCanceled {
		return // what it said was queued is for a later one to say
	}
	for group, n := range e.QueuedAllocations {
		if s, ok := r.Summary.Summary[group]; ok && s.Queued != n {
			s.Queued = n
			r.Summary.Summary[group] = s
			r.Summary.ModifyIndex = e.ModifyIndex
		}
	}
}

// summarizes reports whether the summary counts the allocation: one of an earlier job of this id, which was purged and
// whose work may still be ending, is no part of it.
func (r *JobRow) summarizes(a *drover.Allocation) bool {
	return a.Job == nil || a.Job.CreateIndex == r.Summary.CreateIndex
}

func (r *JobRow) countAlloc(old, a *drover.Allocation, index uint64) {
	s := r.Summary.Summary[a.TaskGroup]
	before := s
	if old != nil {
		r.Allocs--
		r.Live -= one(!old.Terminal())
		if r.summarizes(old) {
			decrement(field(&s, old.ClientStatus))
		}
	} else if s.Queued > 0 {
		s.Queued--
	}
	r.Allocs++
	r.Live += one(!a.Terminal())
	if r.summarizes(a) {
		*field(&s, a.ClientStatus)++
	}
	if s != before {
		r.Summary.Summary[a.TaskGroup] = s
		r.Summary.ModifyIndex = index
	}
}

// forgetAlloc takes a deleted allocation out of the counts; the summary keeps those that ended.
func (r *JobRow) forgetAlloc(a *drover.Allocation, index uint64) {
	r.Allocs--
	r.Live -= one(!a.Terminal())
	if !a.ClientTerminal() && r.summarizes(a) {
		s := r.Summary.Summary[a.TaskGroup]
		decrement(field(&s, a.ClientStatus))
		r.Summary.Summary[a.TaskGroup] = s
		r.Summary.ModifyIndex = index
	}
}

// field returns the counter of a client status.
func field(s *drover.TaskGroupSummary, status string) *int {
	switch status {
	case drover.AllocClientRunning:
		return &s.Running
	case drover.AllocClientComplete:
		return &s.Complete
	case drover.AllocClientFailed:
		return &s.Failed
	case drover.AllocClientLost:
		return &s.Lost
	case drover.AllocClientUnknown:
		return &s.Unknown
	}
	return &s.Starting
}

// decrement stays at 0: a snapshot of an older version may have counts of a purged job's allocations.
func decrement(n *int) {
	if *n > 0 {
		*n--
	}
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}
