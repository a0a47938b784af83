package fsm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/control/command"
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
	require.Equal(t, clusterVersion, c.Version)
	require.Equal(t, c.CreateIndex, c.ModifyIndex)
}
