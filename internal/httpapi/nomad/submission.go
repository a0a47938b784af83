package nomad

import (
	"net/http"
	"strconv"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/tables"
)

// jobSubmission answers with the text that a version of the job was made of.
func (f *Face) jobSubmission(w http.ResponseWriter, r *http.Request, id string) error {
	version, err := strconv.ParseUint(r.URL.Query().Get("version"), 10, 64)
	if err != nil {
		return drover.Errorf(drover.Invalid, "unable to parse job submission version parameter: %w", err)
	}
	at := source{table: tables.JobSubmissions, key: tables.JobKey(namespaceOf(r), id)}
	return single(f, w, r, at, "job source", func(q query, s Snapshot) (*drover.JobSubmission, uint64) {
		sub := s.JobSubmission(q.namespace, id, version)
		if sub == nil {
			return nil, 0
		}
		return sub, sub.JobModifyIndex
	})
}
