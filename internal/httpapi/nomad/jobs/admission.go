package jobs

import (
	"net/http"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/policy"
)

// testAdmission answers PUT /v1/admission/test with the admission rules, of every level, that are against the body's job. It stores
// nothing.
func (f *face) testAdmission(w http.ResponseWriter, r *http.Request) error {
	b, err := f.decodeJob(r, policy.PlanJob)
	if err != nil {
		return err
	}
	found, err := f.Intake.TestAdmission(r.Context(), b.Job)
	if err != nil {
		return err
	}
	if found == nil {
		found = []drover.AdmissionVerdict{}
	}
	return f.Reply(w, r, struct{ Verdicts []drover.AdmissionVerdict }{found})
}
