package e2e

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"
)

// stateful are two nodes with a volume "data" each, which one allocation may write.
type stateful struct {
	*testing.T
	c       *api.Client
	volumes map[string]string // ids by node
}

func startStateful(t *testing.T) *stateful {
	dir := t.TempDir()
	s := start(t, append([]string{"-server"}, config(t, filepath.Join(dir, "s"), "")...)...)
	m := rpcOn.FindStringSubmatch(s.Output())
	require.NotNil(t, m, s.Output())
	for _, name := range []string{"n0", "n1"} {
		file := config(t, filepath.Join(dir, name), clientBlock("servers = [\""+m[1]+"\"]"))
		start(t, append([]string{"-client", "-node", name}, file...)...)
	}
	w := &stateful{t, s.nomad(), map[string]string{}}
	eventually(t, "two nodes", func() (bool, string) {
		list, _, err := w.c.Nodes().List(nil)
		require.NoError(t, err)
		return len(list) == 2 && list[0].Status == "ready" && list[1].Status == "ready", fmt.Sprint(len(list))
	})
	nodes, _, err := w.c.Nodes().List(nil)
	require.NoError(t, err)
	for _, n := range nodes {
		made, _, err := w.c.HostVolumes().Create(&api.HostVolumeCreateRequest{Volume: &api.HostVolume{
			Name: "data", NodeID: n.ID, RequestedCapabilities: []*api.HostVolumeCapability{{
				AttachmentMode: api.HostVolumeAttachmentModeFilesystem, AccessMode: api.HostVolumeAccessModeSingleNodeSingleWriter,
			}},
		}}, nil)
		require.NoError(t, err)
		w.volumes[n.ID] = made.Volume.ID
	}
	return w
}

// writer registers a job that writes the volume of its node.
func (w *stateful) writer(id string, sticky bool) {
	job := rawJob(id, "service", "/bin/sleep", "1000")
	job.TaskGroups[0].Volumes = map[string]*api.VolumeRequest{"d": {
		Name: "d", Type: "host", Source: "data", Sticky: sticky, AccessMode: string(api.HostVolumeAccessModeSingleNodeSingleWriter),
		AttachmentMode: string(api.HostVolumeAttachmentModeFilesystem),
	}}
	_, _, err := w.c.Jobs().Register(job, nil)
	require.NoError(w, err)
}

func (w *stateful) purge(job string) {
	_, _, err := w.c.Jobs().Deregister(job, true, nil)
	require.NoError(w, err)
}

func (w *stateful) claims() []*api.TaskGroupHostVolumeClaim {
	list, _, err := w.c.TaskGroupHostVolumeClaims().List(&api.TaskGroupHostVolumeClaimsListRequest{JobID: "db", VolumeName: "data"}, nil)
	require.NoError(w, err)
	return list
}

// waits returns why a job has no place.
func (w *stateful) waits(job string) (why string) {
	eventually(w.T, job+" waits", func() (bool, string) {
		evals, _, err := w.c.Jobs().Evaluations(job, nil)
		require.NoError(w, err)
		for _, e := range evals {
			if f := e.FailedTGAllocs["group"]; f != nil {
				why = strings.Join(append(slices.Collect(maps.Keys(f.ConstraintFiltered)), slices.Collect(maps.Keys(f.DimensionExhausted))...), "; ")
				return true, ""
			}
		}
		return false, fmt.Sprint(len(evals))
	})
	return why
}

// replaced returns the allocation that runs instead of another one.
func (w *stateful) replaced(id string) (now *api.Allocation) {
	eventually(w.T, "a replacement", func() (bool, string) {
		list, _, err := w.c.Jobs().Allocations("db", false, nil)
		require.NoError(w, err)
		for _, a := range list {
			if a.ID != id && a.ClientStatus == "running" {
				now, _, err = w.c.Allocations().Info(a.ID, nil)
				require.NoError(w, err)
			}
		}
		return now != nil, fmt.Sprint(len(list))
	})
	return now
}

// One allocation writes a volume at a time, and a second writer is told for whom it waits. What replaces an allocation with a sticky volume
// has the same one, and waits for its node; when the claim is given up it goes elsewhere. All by Nomad's client.
func TestAClaimedVolumeHasOneWriter(t *testing.T) {
	t.Parallel()
	w := startStateful(t)
	w.writer("db", true)
	first := allocation(t, w.c, "db", "running")
	claim := w.claims()
	require.Len(t, claim, 1)
	require.Equal(t, []string{first.ID, w.volumes[first.NodeID], "group"},
		[]string{claim[0].AllocID, claim[0].VolumeID, claim[0].TaskGroupName})
	w.writer("other", false)
	require.NotEqual(t, first.NodeID, allocation(t, w.c, "other", "running").NodeID)
	w.writer("third", false)
	why := w.waits("third")
	require.Contains(t, why, `host volume data (job "db" writes it;`)
	require.Contains(t, why, `host volume data (job "other" writes it;`)
	w.purge("third")
	w.purge("other")

	stopped, _, err := w.c.Allocations().Info(first.ID, nil)
	require.NoError(t, err)
	_, err = w.c.Allocations().Stop(stopped, nil)
	require.NoError(t, err)
	second := w.replaced(first.ID)
	require.Equal(t, first.NodeID, second.NodeID)
	again := w.claims()
	require.Equal(t, []string{claim[0].ID, second.ID}, []string{again[0].ID, again[0].AllocID})

	_, err = w.c.Nodes().UpdateDrainOpts(first.NodeID, &api.DrainOptions{DrainSpec: &api.DrainSpec{Deadline: -time.Second}}, nil)
	require.NoError(t, err)
	require.Contains(t, w.waits("db"), fmt.Sprintf("data is not the volume %s that db.group[0] has (claim %s)",
		w.volumes[first.NodeID], claim[0].ID))
	_, err = w.c.TaskGroupHostVolumeClaims().Delete(claim[0].ID, nil)
	require.NoError(t, err)
	third := w.replaced(second.ID)
	require.NotEqual(t, first.NodeID, third.NodeID)
	require.Equal(t, w.volumes[third.NodeID], w.claims()[0].VolumeID)
	w.purge("db")
	require.Empty(t, w.claims(), "they end with the job")
	nothingRuns(t, w.c)
}
