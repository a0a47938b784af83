package store

import (
	"iter"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/tables"
)

func submissionKey(s *drover.JobSubmission) string {
	return versionKey(&drover.Job{Namespace: s.Namespace, ID: s.JobID, Version: s.Version})
}

// JobSubmission returns what a version of the job was made of, or nil if that is not known.
func (r *reader) JobSubmission(namespace, id string, version uint64) *drover.JobSubmission {
	key := submissionKey(&drover.JobSubmission{Namespace: namespace, JobID: id, Version: version})
	return get[drover.JobSubmission](r, tables.JobSubmissions, key)
}

// AllJobSubmissions yields those of all jobs, by namespace and id, the newest first.
func (r *reader) AllJobSubmissions() iter.Seq[*drover.JobSubmission] {
	return scan[drover.JobSubmission](r, tables.JobSubmissions, indexID, "")
}

// PutJobSubmission stores what a version that is stored was made of. It goes with the version.
func (t *Txn) PutJobSubmission(s *drover.JobSubmission) {
	t.insert(tables.JobSubmissions, s)
	t.touch(tables.JobSubmissions, tables.JobKey(s.Namespace, s.JobID))
}

// RestoreJobSubmission stores one from a snapshot on disk.
func (t *Txn) RestoreJobSubmission(s *drover.JobSubmission) { t.insert(tables.JobSubmissions, s) }

func (t *Txn) dropSubmission(j *drover.Job) {
	if s := t.JobSubmission(j.Namespace, j.ID, j.Version); s != nil {
		t.remove(tables.JobSubmissions, s)
		t.touch(tables.JobSubmissions, tables.JobKey(j.Namespace, j.ID))
	}
}
