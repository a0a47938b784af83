package fsm

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/tables"
)

// The first id that a cluster is given stays, and wakes who waits for it.
func TestTheClusterKeepsItsId(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.Nil(t, b.f.Store().Snapshot().Cluster())
	changed := b.f.Store().Watch(tables.Cluster, "")
	b.do(&command.InitCluster{ID: "one", Epoch: "e1"})
	<-changed
	b.do(&command.InitCluster{ID: "two", Epoch: "e2"})
	c := b.f.Store().Snapshot().Cluster()
	require.Equal(t, "one", c.ID)
	require.Equal(t, "e1", c.Epoch)
	require.Equal(t, 1, c.Version)
	require.Equal(t, c.CreateIndex, c.ModifyIndex)
}

// The version rises and never sinks, also before there is a cluster: what a lone server wrote its cluster has.
func TestTheVersionRises(t *testing.T) {
	t.Parallel()
	b := setup(t)
	version := func() int { return cluster.VersionOf(b.f.Store().Snapshot().Cluster()) }
	require.Equal(t, 1, version())
	b.do(&command.RaiseVersion{Version: 2})
	require.Equal(t, 2, version())
	first := *b.f.Store().Snapshot().Cluster()
	require.Empty(t, first.ID)
	b.do(&command.RaiseVersion{Version: 1})
	require.Equal(t, first, *b.f.Store().Snapshot().Cluster(), "nothing is stored")
	b.do(&command.InitCluster{ID: "one", Epoch: "e1"})
	c := b.f.Store().Snapshot().Cluster()
	require.Equal(t, cluster.State{ID: "one", Epoch: "e1", Version: 2, CreateIndex: first.CreateIndex, ModifyIndex: b.index}, *c)
	_, err := b.try(&command.RaiseVersion{Version: command.Newest + 1})
	require.ErrorIs(t, err, ErrUndecodable, "this program could not read what comes behind it")
	require.ErrorContains(t, err, "the cluster writes version 4 from here on, this program reads 1 to 3")
}

// A snapshot has the format of the state's version; a program reads those between its oldest and its newest.
func TestSnapshotsHaveTheClustersVersion(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const version = len("DROVERSNAP") // where its byte stands
	for want := 1; want <= command.Newest; want++ {
		b.do(&command.RaiseVersion{Version: want})
		var image bytes.Buffer
		require.NoError(t, b.f.Snapshot(&image))
		require.Equal(t, byte(want), image.Bytes()[version])
		restored := New(store.New(), nil)
		require.NoError(t, restored.Restore(bytes.NewReader(image.Bytes())))
		require.Equal(t, b.f.Hash(), restored.Hash())
		for _, other := range []byte{0, command.Newest + 1} {
			image.Bytes()[version] = other
			err := restored.Restore(bytes.NewReader(image.Bytes()))
			require.ErrorContains(t, err, "this program reads 1 to 3")
		}
	}
}

// Who compares stores only if nobody changed the configuration meanwhile; 0 is that nobody stored any.
func TestAutopilotIsStored(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.Nil(t, b.f.Store().Snapshot().Autopilot())
	set := func(quorum uint, cas bool, index uint64) any {
		return b.do(&command.SetAutopilot{Config: &cluster.Autopilot{MinQuorum: quorum, ModifyIndex: index}, CAS: cas})
	}
	require.Equal(t, false, set(1, true, 7))
	require.Equal(t, true, set(2, true, 0))
	first := *b.f.Store().Snapshot().Autopilot()
	require.Equal(t, uint(2), first.MinQuorum)
	require.Equal(t, false, set(3, true, 0))
	require.Equal(t, true, set(4, false, 0))
	next := *b.f.Store().Snapshot().Autopilot()
	require.Equal(t, uint(4), next.MinQuorum)
	require.Equal(t, first.CreateIndex, next.CreateIndex)
	require.Greater(t, next.ModifyIndex, first.ModifyIndex)
	require.Equal(t, false, b.do(&command.SetAutopilot{}))
}
