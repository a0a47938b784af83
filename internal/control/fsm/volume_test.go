package fsm

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/volume"
)

// volumes draws a request about a volume, or a node that says something about its own: what is so, or what is not.
func (d draw) volumes(s *store.Snapshot) command.Command {
	switch rapid.IntRange(0, 4).Draw(d.t, "volume") {
	case 4:
		for c := range s.VolumeClaims("*", "") {
			return &command.DeleteVolumeClaim{Namespace: d.pick("of", "default", "none"), ID: c.ID, Time: d.time()}
		}
	case 0:
		return &command.UpsertHostVolume{Time: d.time(), Volume: &volume.HostVolume{
			ID: d.id("v", 4), Namespace: d.pick("namespace", "default", "none"), Name: d.id("name", 3), NodeID: d.id("n", 3),
			Registered: rapid.Bool().Draw(d.t, "registered"),
		}}
	case 1:
		return &command.DeleteHostVolume{
			Namespace: "default", ID: d.id("v", 4), Force: rapid.Bool().Draw(d.t, "force"), Time: d.time(),
		}
	}
	c := node(d.id("n", 3))
	c.Node.Status = d.pick("status", drover.NodeStatusReady, drover.NodeStatusDown)
	c.Node.HostVolumes = map[string]*drover.HostVolumeInfo{}
	for v := range s.HostVolumes("*", "") {
		have := &drover.HostVolumeInfo{Path: "/" + v.ID, ID: v.ID, Report: &drover.HostVolumeReport{Namespace: v.Namespace, Wanted: v.Wanted}}
		switch rapid.IntRange(0, 6).Draw(d.t, "said") {
		case 0:
			continue
		case 1:
			have.Report.Failure = "no"
		case 2:
			have.Report.Wanted--
		case 3:
			have.Report = nil
		default:
			have.Report.Gone = v.State == volume.HostVolumeDeleting
		}
		c.Node.HostVolumes[v.Name] = have
	}
	return c
}

// checkVolumes checks that a node has no more volumes to mount than were asked of it, and that what is said to be ready can be mounted.
func checkVolumes(t testing.TB, s *store.Snapshot) {
	names := map[[2]string]bool{}
	for v := range s.HostVolumes("*", "") {
		key := [2]string{v.NodeID, v.Name}
		require.False(t, names[key], "a name is one volume's on its node")
		names[key] = true
		n := s.Node(v.NodeID)
		if v.State == volume.HostVolumeReady {
			require.NotNil(t, n)
			require.NotEqual(t, drover.NodeStatusDown, n.Status)
			require.True(t, n.HostVolumes[v.Name].OfferedTo(v.Namespace), "%+v", v)
		}
		require.LessOrEqual(t, v.Done, v.Wanted)
		require.LessOrEqual(t, v.Wanted, v.ModifyIndex)
		require.GreaterOrEqual(t, s.NodeChanged(v.NodeID), v.Wanted, "the node hears of it")
	}
	for c := range s.VolumeClaims("*", "") {
		v := s.HostVolume(c.VolumeID)
		require.NotNil(t, v, "a claim is of a volume that there is")
		require.Equal(t, c.VolumeName, v.Name)
		require.NotNil(t, s.Job(c.Namespace, c.JobID), "it is freed with its job")
	}
	for n := range s.Nodes("") {
		for name, have := range n.HostVolumes {
			if have.ID == "" {
				continue
			}
			v := s.HostVolume(have.ID)
			require.NotNil(t, v, "nobody asked for it")
			require.Equal(t, [2]string{n.ID, name}, [2]string{v.NodeID, v.Name})
			require.NotNil(t, have.Report, "it would be everybody's")
			require.Equal(t, v.Namespace, have.Report.Namespace)
			require.NotEqual(t, volume.HostVolumeDeleting, v.State)
		}
	}
}

// mounting is an allocation that runs on n1 and mounts the volume.
func mounting(volume string) *drover.Allocation {
	j := job("j", "batch", 1)
	j.TaskGroups[0].Volumes = map[string]*drover.VolumeRequest{"d": {Type: "host", Source: volume}}
	return &drover.Allocation{
		ID: "a", Namespace: "default", JobID: "j", Job: j, TaskGroup: j.TaskGroups[0].Name, NodeID: "n1",
		ClientStatus: drover.AllocClientRunning,
	}
}

// A volume from the request to its end: what its node says counts for the request that it is about.
func TestAVolumeFromRequestToEnd(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.do(node("n1"))
	say := func(have *drover.HostVolumeInfo) {
		c := node("n1")
		if have != nil {
			c.Node.HostVolumes = map[string]*drover.HostVolumeInfo{"data": have}
		}
		b.do(c)
	}
	state := func() string {
		if v := b.now().HostVolume("v"); v != nil {
			return v.State
		}
		return ""
	}
	want := &command.UpsertHostVolume{Volume: &volume.HostVolume{ID: "v", Namespace: "default", Name: "data", NodeID: "n1"}, Time: 1}
	v := b.do(want).(*volume.HostVolume)
	require.Equal(t, volume.HostVolumePending, v.State)
	require.Equal(t, v.Wanted, b.now().NodeChanged("n1"))
	_, err := b.try(&command.UpsertHostVolume{Volume: &volume.HostVolume{ID: "w", Namespace: "default", Name: "data", NodeID: "n1"}})
	require.Equal(t, drover.Conflict, drover.CodeOf(err), "%v", err)
	has := func(wanted uint64) *drover.HostVolumeInfo {
		return &drover.HostVolumeInfo{ID: "v", Path: "/v", Report: &drover.HostVolumeReport{Namespace: "default", Wanted: wanted}}
	}
	say(has(v.Wanted - 1))
	require.Equal(t, volume.HostVolumePending, state(), "that was another request")
	say(has(v.Wanted))
	require.Equal(t, volume.HostVolumeReady, state())
	require.Equal(t, "/v", b.now().HostVolume("v").HostPath)
	require.NotNil(t, b.now().Node("n1").HostVolumes["data"])

	down := func(status string) {
		b.do(&command.UpdateNodeStatuses{Nodes: []command.NodeStatus{{NodeID: "n1", Status: status}}, Time: 2})
	}
	down(drover.NodeStatusDown)
	require.Equal(t, volume.HostVolumeUnavailable, state())
	down(drover.NodeStatusReady)
	require.Equal(t, volume.HostVolumeReady, state(), "a heartbeat brought it back")
	say(&drover.HostVolumeInfo{ID: "v", Path: "/v"})
	require.Equal(t, volume.HostVolumeUnavailable, state(), "it does not say whose it is")
	require.Empty(t, b.now().Node("n1").HostVolumes)
	say(nil)
	require.Equal(t, volume.HostVolumeUnavailable, state())
	say(has(v.Wanted))

	a := mounting("data")
	require.True(t, v.MountedBy(a))
	txn := b.f.store.Begin(b.index)
	txn.PutAllocation(a)
	txn.Commit()
	_, err = b.try(&command.DeleteHostVolume{Namespace: "default", ID: "v", Force: true})
	require.ErrorContains(t, err, "volume v in use by allocations: a")
	require.Equal(t, drover.Conflict, drover.CodeOf(err))
	_, err = b.try(&command.DeleteHostVolume{Namespace: "other", ID: "v", Force: true})
	require.Equal(t, drover.NotFound, drover.CodeOf(err))
	ended := *a
	ended.ClientStatus = drover.AllocClientComplete
	txn = b.f.store.Begin(b.index)
	txn.PutAllocation(&ended)
	txn.Commit()

	v = b.do(&command.DeleteHostVolume{Namespace: "default", ID: "v"}).(*volume.HostVolume)
	require.Empty(t, b.now().Node("n1").HostVolumes, "nothing is placed on it any more")
	say(has(1))
	require.Equal(t, volume.HostVolumeDeleting, state(), "the node has not heard of it")
	require.Empty(t, b.now().Node("n1").HostVolumes)
	failed := has(v.Wanted)
	failed.Report.Failure = "busy"
	say(failed)
	require.Equal(t, volume.HostVolumeUnavailable, state())
	require.Equal(t, "busy", b.now().HostVolume("v").StateDescription)
	v = b.do(&command.DeleteHostVolume{Namespace: "default", ID: "v"}).(*volume.HostVolume)
	say(failed)
	require.Equal(t, volume.HostVolumeDeleting, state(), "it failed before")
	gone := has(v.Wanted)
	gone.Report.Gone = true
	say(gone)
	require.Empty(t, state())
	require.Equal(t, b.index, b.now().NodeChanged("n1"), "the node hears that it may forget it")
}

// A sticky volume is claimed by the first allocation that has it and by each that replaces that, until the job is purged, the volume is
// gone or somebody gives the claim up. Who waits for it is looked at then.
func TestStickyVolumesAreClaimed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.do(node("n1"))
	v := b.do(&command.UpsertHostVolume{Volume: &volume.HostVolume{ID: "v", Namespace: "default", Name: "data", NodeID: "n1"}, Time: 1})
	has := node("n1")
	has.Node.HostVolumes = map[string]*drover.HostVolumeInfo{"data": {
		ID: "v", Path: "/v", Report: &drover.HostVolumeReport{Namespace: "default", Wanted: v.(*volume.HostVolume).Wanted},
	}}
	b.do(has)
	place := func(id, previous string) {
		j := b.now().Job("default", "j")
		b.do(&command.ApplyPlans{Plans: []command.PlanCommit{{Job: j, Placed: []*drover.Allocation{{
			ID: id, Namespace: "default", JobID: "j", Name: "j.g[0]", TaskGroup: j.TaskGroups[0].Name, NodeID: "n1", PreviousAllocation: previous,
		}}}}, Time: 3})
	}
	claims := func() (out []volume.HostVolumeClaim) {
		for c := range b.now().VolumeClaims("*", "") {
			out = append(out, *c)
		}
		return out
	}
	j := job("j", "service", 1)
	j.TaskGroups[0].Volumes = map[string]*drover.VolumeRequest{"d": {Type: "host", Source: "data", Sticky: true}}
	b.do(&command.RegisterJob{Job: j, Time: 2})
	place("a0", "")
	require.Empty(t, claims(), "the servers are of version 2")
	b.do(&command.InitCluster{ID: "one", Epoch: "e1"})
	b.do(&command.RaiseVersion{Version: 3})
	place("a1", "a0")
	first := claims()
	require.Len(t, first, 1)
	index := b.now().Index()
	require.Equal(t, volume.HostVolumeClaim{
		ID: first[0].ID, Namespace: "default", JobID: "j", TaskGroupName: j.TaskGroups[0].Name, AllocID: "a1", AllocName: "j.g[0]",
		VolumeID: "v", VolumeName: "data", CreateIndex: index, ModifyIndex: index,
	}, first[0])
	place("a2", "a1")
	next := claims()
	require.Len(t, next, 1)
	require.Equal(t, []any{first[0].ID, index, "a2"}, []any{next[0].ID, next[0].CreateIndex, next[0].AllocID})

	evals := func() (n int) {
		for range b.now().EvaluationsByJob("default", "j") {
			n++
		}
		return n
	}
	_, err := b.try(&command.DeleteVolumeClaim{Namespace: "other", ID: first[0].ID})
	require.Equal(t, drover.NotFound, drover.CodeOf(err))
	before := evals()
	b.do(&command.DeleteVolumeClaim{Namespace: "default", ID: first[0].ID})
	require.Empty(t, claims())
	require.Equal(t, before+1, evals())
	place("a3", "a2")
	require.Len(t, claims(), 1)
	b.do(&command.StopAllocs{IDs: []string{"a3"}, Time: 4})
	for _, id := range []string{"a0", "a1", "a2", "a3"} {
		b.do(&command.UpdateAllocs{Time: 5, Nodes: []command.NodeUpdates{{
			NodeID: "n1", Updates: []exchange.AllocUpdate{{ID: id, ClientStatus: drover.AllocClientComplete}},
		}}})
	}
	b.do(&command.DeleteHostVolume{Namespace: "default", ID: "v", Force: true})
	require.Empty(t, claims(), "there is nothing to stick to any more")
	require.Equal(t, before+2, evals())
}
