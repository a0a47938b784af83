package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// sleeper is a job whose allocation needs little of the disk.
func sleeper(id string) *api.Job {
	task := api.NewTask("t", "raw_exec").SetConfig("command", "/bin/sleep").SetConfig("args", []string{"600"})
	task.Resources = &api.Resources{CPU: new(1), MemoryMB: new(10)}
	task.LogConfig = &api.LogConfig{MaxFiles: new(1), MaxFileSizeMB: new(10)}
	g := api.NewTaskGroup("g", 1).AddTask(task)
	g.EphemeralDisk = &api.EphemeralDisk{SizeMB: new(10)}
	return api.NewServiceJob(id, id, "global", 50).AddTaskGroup(g)
}

// TestFullDisk: with no space left under data_dir writes are refused with the reason, what runs goes on, and reads
// are answered. When there is space again everything goes on without a restart; nothing acknowledged is lost.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	disk := t.TempDir()
	require.NoError(t, unix.Mount("tmpfs", disk, "tmpfs", 0, "size=64m"))
	t.Cleanup(func() { require.NoError(t, unix.Unmount(disk, unix.MNT_DETACH)) })
	args := config(t, filepath.Join(disk, "data"), "server {\n  enabled = true\n}\n"+clientBlock("enabled = true"))
	a := start(t, args...)
	runs := func(id string) {
		t.Helper()
		eventually(t, id+" to run", func() (bool, string) {
			s, _, err := a.nomad().Jobs().Summary(id, nil)
			return err == nil && s.Summary["g"].Running == 1, fmt.Sprint(s, err)
		})
	}
	register := func(id string) error {
		_, _, err := a.nomad().Jobs().Register(sleeper(id), nil)
		return err
	}
	require.NoError(t, register("before"))
	runs("before")

	ballast := filepath.Join(disk, "ballast")
	f, err := os.Create(ballast)
	require.NoError(t, err)
	for err == nil {
		_, err = f.Write(make([]byte, 1<<20))
	}
	require.ErrorIs(t, err, unix.ENOSPC)
	require.NoError(t, f.Close())
	require.ErrorContains(t, register("refused"), "no space left")
	runs("before")
	_, _, err = a.nomad().Jobs().Info("refused", nil)
	require.Error(t, err, "what was refused is not there")
	health, err := a.nomad().Agent().Health()
	require.NoError(t, err)
	require.False(t, health.Server.Ok)
	require.Contains(t, health.Server.Message, "no space left")
	require.True(t, health.Client.Ok)

	require.NoError(t, os.Remove(ballast))
	eventually(t, "writes to go on", func() (bool, string) {
		err := register("after")
		return err == nil, fmt.Sprint(err)
	})
	runs("after")
	health, err = a.nomad().Agent().Health()
	require.NoError(t, err)
	require.True(t, health.Server.Ok, health.Server.Message)
	self, err := a.nomad().Agent().Self()
	require.NoError(t, err)
	for _, key := range []string{"state", "term", "applied_index", "commit_index", "last_log_index", "num_peers"} {
		require.NotEmpty(t, self.Stats["raft"][key], key)
	}
	require.Equal(t, "Leader", self.Stats["raft"]["state"])
	a.PullThePlug()
	a = start(t, args...)
	for _, id := range []string{"before", "after"} {
		runs(id)
		_, _, err := a.nomad().Jobs().Deregister(id, true, nil)
		require.NoError(t, err)
	}
	eventually(t, "all to end", func() (bool, string) {
		list, _, err := a.nomad().Allocations().List(nil)
		for _, x := range list {
			if x.ClientStatus == api.AllocClientStatusRunning {
				return false, x.ID
			}
		}
		return err == nil, fmt.Sprint(err)
	})
	a.Stop()
}
