package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"
)

// The folder of a volume is removed under a running task. The next start says so and is not repeated on the spot, nor at once elsewhere:
// each replacement comes later than the one before. None leaves anything mounted, and the first after the folder is back runs.
func TestAVolumeThatVanishedWhileItsTaskRuns(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "data")
	require.NoError(t, os.Mkdir(folder, 0o777))
	a := start(t, append([]string{"-dev"}, config(t, "", clientBlock(fmt.Sprintf("host_volume \"data\" {\n  path = %q\n}", folder)))...)...)
	c := a.nomad()
	job := rawJob("db", "service", "/bin/sh", "-c", "while :; do sleep 1; done")
	group := job.TaskGroups[0]
	group.RestartPolicy = &api.RestartPolicy{Attempts: new(3), Interval: new(time.Hour), Delay: new(time.Second), Mode: new("fail")}
	group.ReschedulePolicy = &api.ReschedulePolicy{
		Unlimited: new(true), Delay: new(5 * time.Second), MaxDelay: new(time.Minute), DelayFunction: new("exponential"),
	}
	group.Tasks[0].Driver = "sandbox"
	group.Tasks[0].SetConfig("image", "host")
	group.Volumes = map[string]*api.VolumeRequest{"d": {Name: "d", Type: "host", Source: "data"}}
	group.Tasks[0].VolumeMounts = []*api.VolumeMount{{Volume: new("d"), Destination: new("/data")}}
	_, _, err := c.Jobs().Register(job, nil)
	require.NoError(t, err)
	first := allocation(t, c, "db", "running")
	require.NoError(t, os.Remove(folder))
	whole, _, err := c.Allocations().Info(first.ID, nil)
	require.NoError(t, err)
	require.NoError(t, c.Allocations().Restart(whole, "main", nil))

	why := fmt.Sprintf(`volume "d": host volume "data" is not there any more: stat %s: no such file or directory`, folder)
	var tries []*api.AllocationListStub
	eventually(t, "two replacements that fail, too", func() (bool, string) {
		tries, _, err = c.Jobs().Allocations("db", true, nil)
		require.NoError(t, err)
		return len(tries) >= 3 && !slices.ContainsFunc(tries, func(x *api.AllocationListStub) bool { return x.ClientStatus != "failed" }),
			fmt.Sprint(len(tries))
	})
	slices.SortFunc(tries, func(x, y *api.AllocationListStub) int { return int(x.CreateIndex) - int(y.CreateIndex) })
	for i, x := range tries {
		says := []string{}
		for _, e := range x.TaskStates["main"].Events {
			if e.Type == api.TaskSetupFailure {
				says = append(says, e.DisplayMessage)
			}
		}
		require.Equal(t, []string{why}, says, "try %d is not repeated on the spot", i)
		if i > 0 {
			require.GreaterOrEqual(t, time.Duration(x.CreateTime-tries[i-1].CreateTime), 5*time.Second*time.Duration(i), "try %d", i)
		}
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	require.NoError(t, err)
	require.NotContains(t, string(mounts), folder, "nothing of it is left")

	require.NoError(t, os.Mkdir(folder, 0o777))
	again := allocation(t, c, "db", "running")
	require.NotEqual(t, first.ID, again.ID)
	_, _, err = c.Jobs().Deregister("db", true, nil)
	require.NoError(t, err)
	nothingRuns(t, c)
}
