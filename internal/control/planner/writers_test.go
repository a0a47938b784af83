package planner

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

// mounting is an allocation that mounts the volume "data".
func mounting(id, namespace string, r drover.VolumeRequest) *drover.Allocation {
	a := alloc(id, "n", 1)
	r.Type, r.Source = "host", "data"
	a.Namespace, a.TaskGroup = namespace, "g"
	a.Job = &drover.Job{ID: id, Namespace: namespace, TaskGroups: []*drover.TaskGroup{{
		Name: "g", Volumes: map[string]*drover.VolumeRequest{"v": &r},
	}}}
	return a
}

// Two schedulers may place a writer each at the same time: the second one is refused, also before the first is in the state.
func TestASecondWriterIsRefused(t *testing.T) {
	t.Parallel()
	alone, shared := drover.VolumeRequest{AccessMode: drover.AccessSingleWriter}, drover.VolumeRequest{}
	readOnly := drover.VolumeRequest{ReadOnly: true}
	with := func(dynamic bool, there ...*drover.Allocation) *fakeState {
		f := newFakeState()
		f.nodes["n"] = node("n", 1000)
		f.nodes["n"].HostVolumes = map[string]*drover.HostVolumeInfo{"data": {Path: "/d"}}
		if dynamic {
			f.nodes["n"].HostVolumes["data"].ID = "v"
		}
		for _, a := range there {
			f.allocs[a.ID] = a
		}
		return f
	}
	stopping, ended := mounting("x", "default", alone), mounting("x", "default", alone)
	stopping.DesiredStatus, ended.ClientStatus = drover.AllocDesiredStop, drover.AllocClientComplete
	for name, c := range map[string]struct {
		state *fakeState
		plan  *drover.Plan
		ok    bool
	}{
		"alone":             {with(true), place(mounting("a", "default", alone)), true},
		"together":          {with(true), place(mounting("a", "default", alone), mounting("b", "default", shared)), false},
		"both share":        {with(true), place(mounting("a", "default", shared), mounting("b", "default", shared)), true},
		"a reader":          {with(true), place(mounting("a", "default", alone), mounting("b", "default", readOnly)), true},
		"one is there":      {with(true, mounting("x", "default", alone)), place(mounting("a", "default", shared)), false},
		"one shares it":     {with(true, mounting("x", "default", shared)), place(mounting("a", "default", alone)), false},
		"one is stopping":   {with(true, stopping), place(mounting("a", "default", alone)), false},
		"one has ended":     {with(true, ended), place(mounting("a", "default", alone)), true},
		"it is there":       {with(true, mounting("a", "default", alone)), place(mounting("a", "default", alone)), true},
		"of a static one":   {with(false, mounting("x", "default", alone)), place(mounting("a", "default", alone)), true},
		"another namespace": {with(true, mounting("x", "other", alone)), place(mounting("a", "default", alone)), true},
	} {
		require.Equal(t, c.ok, len(Check(c.state.snapshot(), c.plan).RejectedNodes) == 0, name)
	}
	v := &view{Snapshot: with(true).snapshot(), over: overlay{}}
	first := check(v, place(mounting("a", "default", alone)))
	v.over.addResult(&first)
	require.NotEmpty(t, check(v, place(mounting("b", "default", alone))).RejectedNodes, "the first is not in the state yet")
}
