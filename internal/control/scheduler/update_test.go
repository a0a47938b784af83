package scheduler

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

// TestAProvenVersionIsNotHalted: a version that was rolled out begins from nothing once more when all of it was evicted;
// that this deployment fails, as there was no room for too long, does not end the version for good.
func TestAProvenVersionIsNotHalted(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]int{drover.DeploymentSuccessful: 1, drover.DeploymentCancelled: 0} {
		w := newWorld()
		w.addNode("n", nil)
		j := newJob("web", drover.JobTypeService, 1)
		j.TaskGroups[0].Update = &drover.UpdateStrategy{MaxParallel: new(1)}
		w.putJob(j)
		for i, s := range []string{status, drover.DeploymentFailed} {
			id := fmt.Sprint("d", i)
			w.deployments[id] = &drover.Deployment{
				ID: id, Namespace: "default", JobID: "web", JobVersion: j.Version, JobCreateIndex: j.CreateIndex, Status: s,
				CreateIndex: uint64(i + 1), TaskGroups: map[string]*drover.DeploymentState{"g": {DesiredTotal: 1}},
			}
		}
		require.Len(t, placed(w.eval("web")), want, status)
	}
}
