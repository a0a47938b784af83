package intake

import (
	"context"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/command"
)

// RevertJob makes an older version the newest; one that is a stop stops the job. Errors: NotFound (job or version),
// Invalid for the current version, Conflict when EnforcePriorVersion is not the current one.
func (in *Intake) RevertJob(ctx context.Context, r drover.RevertRequest) (drover.Outcome, error) {
	now, err := in.job(r.Namespace, r.ID)
	if err != nil {
		return drover.Outcome{}, err
	}
	if now.Version == r.Version {
		return drover.Outcome{}, drover.Errorf(drover.Invalid, "can't revert to current version")
	}
	if p := r.EnforcePriorVersion; p != nil && *p != now.Version {
		return drover.Outcome{}, drover.Errorf(drover.Conflict, "current job has version %d; enforcing version %d", now.Version, *p)
	}
	s := in.deps.Store.Snapshot()
	old := s.JobVersion(r.Namespace, r.ID, r.Version)
	if old == nil {
		return drover.Outcome{}, drover.Errorf(drover.NotFound, "job %q in namespace %q at version %d not found", r.ID, r.Namespace, r.Version)
	}
	var warnings []string
	if !old.Stop {
		if warnings, err = in.refused(ctx, old); err != nil {
			return drover.Outcome{}, err
		}
	}
	spec := *old
	// Register replaces 0 by the present time: the revert is a submission of its own.
	spec.SubmitTime = 0
	req := drover.RegisterRequest{
		EnforceIndex: true, JobModifyIndex: now.JobModifyIndex,
		Submission: s.JobSubmission(r.Namespace, r.ID, r.Version), // it is what this version will be made of, too
	}
	o, err := in.register(ctx, &spec, registration{RegisterRequest: req, by: drover.TriggerJobRegister, warnings: warnings})
	if err == nil {
		o.RevertedJobVersion = new(r.Version)
	}
	return o, err
}

// TagJobVersion names a version, so that it is kept. Errors: NotFound, Invalid, Conflict if another has the name.
func (in *Intake) TagJobVersion(ctx context.Context, r drover.TagRequest) (drover.Outcome, error) {
	if r.Name == "" || len(r.Name) > 128 || len(r.Description) > 1000 {
		return drover.Outcome{}, drover.Errorf(drover.Invalid,
			"a version tag needs a name of 1 to 128 bytes and at most 1000 bytes of description")
	}
	return in.propose(ctx, &command.TagJobVersion{
		Namespace: r.Namespace, ID: r.ID, Version: r.Version, Name: r.Name,
		Tag: &drover.JobVersionTag{Name: r.Name, Description: r.Description, TaggedTime: in.now().UnixNano()},
	})
}

// UntagJobVersion removes a version's name. Errors: NotFound.
func (in *Intake) UntagJobVersion(ctx context.Context, namespace, id, name string) (drover.Outcome, error) {
	return in.propose(ctx, &command.TagJobVersion{Namespace: namespace, ID: id, Name: name})
}

// SetJobStable marks a version as known to work or not. Errors: NotFound.
func (in *Intake) SetJobStable(ctx context.Context, namespace, id string, version uint64, stable bool) (drover.Outcome, error) {
	o, err := in.propose(ctx, &command.SetJobStability{Namespace: namespace, ID: id, Version: version, Stable: stable})
	o.JobModifyIndex = o.Index
	return o, err
}
