package drover

import "github.com/drover-project/drover/internal/validation"

// Validate reports everything that is wrong with a canonicalized job, joined, each with its path in the job, as one
// Invalid error; nil if it can be registered. Drivers check Task.Config themselves.
func (j *Job) Validate() error {
	v := &validation.Report{}
	j.validate(v)
	if err := v.Err(); err != nil {
		return Errorf(Invalid, "job validation: %w", err)
	}
	return nil
}

// maxAmount bounds every amount that a job can ask for, so that sums of them fit.
const maxAmount = 1<<31 - 1
