package rollouts

import (
	"fmt"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/store"
)

// Unrest implements sim.Extra: every job is what its newest version wants, or the deployment of that failed; and its status is the
// one that Nomad would give it.
func (h *history) Unrest(s *store.Snapshot) string {
	for j := range s.Jobs("*", "") {
		if want := statusOf(s, j); j.Status != want {
			return fmt.Sprintf("job %s is %s, and should be %s", j.ID, j.Status, want)
		}
		if j.Type != drover.JobTypeService && j.Type != drover.JobTypeSystem {
			continue
		}
		if why := deploymentsRest(s, j); why != "" {
			return fmt.Sprintf("job %s: %s", j.ID, why)
		}
		if why := versionRests(s, j); why != "" {
			return fmt.Sprintf("job %s: %s", j.ID, why)
		}
	}
	return ""
}

// statusOf is Nomad's rule.
func statusOf(s *store.Snapshot, j *drover.Job) string {
	if j.Type == drover.JobTypeSystem || j.Periodical() || j.Parameterized() {
		if j.Stop {
			return drover.JobStatusDead
		}
		return drover.JobStatusRunning
	}
	for a := range s.AllocationsByJob(j.Namespace, j.ID) {
		if !a.Terminal() {
			return drover.JobStatusRunning
		}
	}
	for d := range s.DeploymentsByJob(j.Namespace, j.ID) {
		if d.Active() && !j.Stop && d.JobCreateIndex == j.CreateIndex {
			return drover.JobStatusRunning
		}
	}
	for e := range s.EvaluationsByJob(j.Namespace, j.ID) {
		if !e.Terminal() {
			return drover.JobStatusPending
		}
	}
	return drover.JobStatusDead // in these histories nothing is registered without an evaluation
}

// waitsForRoom reports whether a blocked evaluation waits for room for the job.
func waitsForRoom(s *store.Snapshot, j *drover.Job) bool {
	for e := range s.EvaluationsByJob(j.Namespace, j.ID) {
		if e.Status == drover.EvalBlocked {
			return true
		}
	}
	return false
}

// deploymentsRest: a deployment goes on only for want of room, and then it is the newest version's.
func deploymentsRest(s *store.Snapshot, j *drover.Job) string {
	for d := range s.DeploymentsByJob(j.Namespace, j.ID) {
		if !d.Active() {
			continue
		}
		if j.Stop || d.JobVersion != j.Version || d.JobCreateIndex != j.CreateIndex {
			return fmt.Sprintf("deployment of version %d is %s, and the job's is %d", d.JobVersion, d.Status, j.Version)
		}
		if !waitsForRoom(s, j) {
			return fmt.Sprintf("deployment of version %d is %s: %s", d.JobVersion, d.Status, d.StatusDescription)
		}
	}
	return ""
}

// versionRests: all that runs is the job's version, unless its deployment failed or it waits for room. Nothing is a
// canary any more.
func versionRests(s *store.Snapshot, j *drover.Job) string {
	halted := waitsForRoom(s, j)
	for d := range s.DeploymentsByJob(j.Namespace, j.ID) {
		halted = halted || d.Status == drover.DeploymentFailed && d.JobVersion == j.Version && d.JobCreateIndex == j.CreateIndex
	}
	for a := range s.AllocationsByJob(j.Namespace, j.ID) {
		switch {
		case a.Terminal():
		case canary(s, a) && !halted:
			return fmt.Sprintf("%s is a canary", a.Name)
		case halted:
		case a.Version() != j.Version:
			return fmt.Sprintf("%s has version %d of %d", a.Name, a.Version(), j.Version)
		}
	}
	return ""
}
