package intake

import (
	"fmt"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/fsm"
	"github.com/drover-project/drover/internal/control/store"
)

// FailedByHealth is why a deployment fails whose allocations are unhealthy and are not replaced any more.
const FailedByHealth = "Failed due to unhealthy allocations"

// Failure is how a deployment ends that fails because of why. With revert, the job is the version to go back to: the newest
// stable one. It is nil if there is none, or if that is what the job is already: going back to it would fail again, and again.
func Failure(s *store.Snapshot, d *drover.Deployment, why string, revert bool) (*drover.DeploymentStatusUpdate, *drover.Job) {
	var target *drover.Job
	current := s.Job(d.Namespace, d.JobID)
	if revert && current != nil && current.Version == d.JobVersion && current.CreateIndex == d.JobCreateIndex {
		target = newestStable(s, current)
		switch {
		case target == nil:
			why += " - no stable job version to auto revert to"
		case fsm.SameSpec(target, current):
			why += fmt.Sprintf(" - not rolling back to stable job version %d as current job has same specification", target.Version)
			target = nil
		default:
			why += fmt.Sprintf(" - rolling back to job version %d", target.Version)
		}
	}
	return &drover.DeploymentStatusUpdate{
		DeploymentID: d.ID, Status: drover.DeploymentFailed, StatusDescription: why,
	}, target
}

// newestStable may be the current version itself. The version of a stop is as stable as what it stopped, and no version
// to go back to.
func newestStable(s *store.Snapshot, current *drover.Job) *drover.Job {
	for _, v := range s.JobVersions(current.Namespace, current.ID) {
		if v.Stable && !v.Stop && v.Version <= current.Version {
			return v
		}
	}
	return nil
}
