package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"
)

// A job waits for a volume that is then created, by Nomad's client. What it writes there is there after the plug was pulled and for what
// runs later. The volume is not deleted while it is mounted; then its folder goes with it.
func TestAVolumeIsMadeMountedKeptAndDeleted(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	known := t.TempDir()
	args := append([]string{"-server", "-client"}, config(t, data, clientBlock(fmt.Sprintf("host_volume_paths = [%q]", known)))...)
	a := start(t, args...)
	t.Cleanup(func() { cleanAfter(t, args) })
	c := a.nomad()
	job := rawJob("db", "service", "/bin/sh", "-c", "echo row >>/data/rows; while :; do sleep 1; done")
	group := job.TaskGroups[0]
	group.Tasks[0].Driver = "sandbox"
	group.Tasks[0].SetConfig("image", "host")
	group.Volumes = map[string]*api.VolumeRequest{"d": {Name: "d", Type: "host", Source: "data"}}
	group.Tasks[0].VolumeMounts = []*api.VolumeMount{{Volume: new("d"), Destination: new("/data")}}
	_, _, err := c.Jobs().Register(job, nil)
	require.NoError(t, err)

	volumes := c.HostVolumes()
	made, _, err := volumes.Create(&api.HostVolumeCreateRequest{Volume: &api.HostVolume{
		Name: "data", Parameters: map[string]string{"mode": "0777"},
	}}, nil)
	require.NoError(t, err)
	v := made.Volume
	require.Equal(t, api.HostVolumeStateReady, v.State)
	require.Equal(t, filepath.Join(data, "host_volumes", v.ID), v.HostPath)
	_, _, err = volumes.Create(&api.HostVolumeCreateRequest{Volume: &api.HostVolume{Name: "data"}}, nil)
	require.ErrorContains(t, err, `has a volume "data" already`)
	_, _, err = volumes.Create(&api.HostVolumeCreateRequest{Volume: &api.HostVolume{
		Name: "x", Parameters: map[string]string{"mode": "9"},
	}}, nil)
	require.ErrorContains(t, err, "parameters.mode: must be an octal number")
	alloc := allocation(t, c, "db", "running")
	shown, _, err := volumes.Get(v.ID, nil)
	require.NoError(t, err)
	require.Len(t, shown.Allocations, 1)
	require.Equal(t, alloc.ID, shown.Allocations[0].ID)
	list, _, err := volumes.List(&api.HostVolumeListRequest{NodeID: v.NodeID}, &api.QueryOptions{Namespace: "*"})
	require.NoError(t, err)
	require.Len(t, list, 1, "what could not be made is forgotten")
	_, _, err = volumes.Delete(&api.HostVolumeDeleteRequest{ID: v.ID, Force: true}, nil)
	require.ErrorContains(t, err, "in use by allocations: "+alloc.ID)

	a.PullThePlug()
	c = start(t, args...).nomad()
	volumes = c.HostVolumes()
	alloc = allocation(t, c, "db", "running")
	restarted, _, err := c.Allocations().Info(alloc.ID, nil)
	require.NoError(t, err)
	require.NoError(t, c.Allocations().Restart(restarted, "main", nil))
	eventually(t, "a second row", func() (bool, string) {
		rows, err := os.ReadFile(filepath.Join(v.HostPath, "rows"))
		return err == nil && string(rows) == "row\nrow\n", string(rows)
	})
	_, _, err = c.Jobs().Deregister("db", true, nil)
	require.NoError(t, err)
	nothingRuns(t, c)
	_, _, err = volumes.Delete(&api.HostVolumeDeleteRequest{ID: v.ID}, nil)
	require.NoError(t, err)
	require.NoDirExists(t, v.HostPath)
	_, _, err = volumes.Get(v.ID, nil)
	var status api.UnexpectedResponseError
	require.ErrorAs(t, err, &status)
	require.Equal(t, http.StatusNotFound, status.StatusCode())

	_, _, err = volumes.Register(&api.HostVolumeRegisterRequest{Volume: &api.HostVolume{Name: "etc", NodeID: v.NodeID, HostPath: "/etc"}}, nil)
	require.ErrorContains(t, err, "client.host_volume_paths")
	registered, _, err := volumes.Register(&api.HostVolumeRegisterRequest{Volume: &api.HostVolume{
		Name: "known", NodeID: v.NodeID, HostPath: known,
	}}, nil)
	require.NoError(t, err)
	node, _, err := c.Nodes().Info(v.NodeID, nil)
	require.NoError(t, err)
	require.Equal(t, map[string]*api.HostVolumeInfo{"known": {Path: known, ID: registered.Volume.ID}}, node.HostVolumes)
	_, _, err = volumes.Delete(&api.HostVolumeDeleteRequest{ID: registered.Volume.ID}, nil)
	require.NoError(t, err)
	require.DirExists(t, known)
}
