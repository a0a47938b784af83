package fsm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/command"
)

// A version that is made by scaling, by a stop or by a roll-back keeps the text of what it was made of, with the time of that. The page
// showed no source of a job that had been scaled once.
func TestVersionsOfNoTextKeepTheOneBefore(t *testing.T) {
	t.Parallel()
	for _, version := range []int{keepsSource - 1, keepsSource} {
		b := setup(t)
		b.do(&command.RaiseVersion{Version: version})
		b.do(&command.RegisterJob{Job: job("j", "service", 1), Submission: &drover.JobSubmission{Source: "one"}})
		given := b.index
		b.do(&command.SetJobStability{Namespace: "default", ID: "j", Stable: true})
		source := func() string {
			s := b.now().JobSubmission("default", "j", b.now().Job("default", "j").Version)
			if s == nil {
				return ""
			}
			if s.Source == "one" {
				require.Equal(t, given, s.JobModifyIndex, "the text is as old as it is")
			}
			return s.Source
		}
		// An older server, which reads the same log, keeps none.
		kept := map[bool]string{true: "one"}[version >= keepsSource]

		scaled := job("j", "service", 3)
		b.do(&command.RegisterJob{Job: scaled, Scaling: &command.ScalingRecord{Group: "g"}})
		require.Equal(t, uint64(1), b.now().Job("default", "j").Version)
		require.Equal(t, kept, source(), "scaled, version %d", version)

		b.do(&command.DeregisterJob{Namespace: "default", ID: "j"})
		require.True(t, b.now().Job("default", "j").Stop)
		require.Equal(t, kept, source(), "stopped, version %d", version)

		other := job("j", "service", 3)
		other.Priority = 60
		b.do(&command.RegisterJob{Job: other, Submission: &drover.JobSubmission{Source: "two"}})
		require.Equal(t, "two", source(), "a text of its own")
		b.do(&command.UpsertDeployment{Deployment: &drover.Deployment{
			ID: "d", Namespace: "default", JobID: "j", Status: drover.DeploymentRunning,
		}})
		b.do(&command.UpdateDeploymentStatus{
			Update: &drover.DeploymentStatusUpdate{DeploymentID: "d", Status: drover.DeploymentFailed},
			Job:    b.now().JobVersion("default", "j", 0),
		})
		require.Equal(t, map[bool]string{true: "one"}[version >= keepsSource], source(), "rolled back, version %d", version)

		plain := job("j", "service", 1)
		plain.Priority = 70
		b.do(&command.RegisterJob{Job: plain})
		require.Empty(t, source(), "a registration without a text is made of none")
		restore(t, b.f)
	}
}
