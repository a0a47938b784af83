package jobs

import (
	"net/http"
	"strconv"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi/nomad/answer"
	"github.com/drover-project/drover/internal/tables"
)

// jobSubmission answers with the text that a version of the job was made of.
func (f *face) jobSubmission(w http.ResponseWriter, r *http.Request, id string) error {
	version, err := strconv.ParseUint(r.URL.Query().Get("version"), 10, 64)
	if err != nil {
		return drover.Errorf(drover.Invalid, "unable to parse job submission version parameter: %w", err)
	}
	at := ofJob(tables.JobSubmissions, r, id)
	return answer.Single(f.Cluster, w, r, at, "job source", func(q answer.Query, s answer.Snapshot) (*drover.JobSubmission, uint64) {
		sub := s.JobSubmission(q.Namespace, id, version)
		if sub == nil {
			return nil, 0
		}
		return sub, sub.JobModifyIndex
	})
}
