package fsm

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/store"
)

func apply(t *testing.T, f *FSM, index uint64, c command.Command) (any, error) {
	t.Helper()
	data, err := command.Encode(c)
	require.NoError(t, err)
	return f.Apply(index, data)
}

func TestFleetSurvivesASnapshot(t *testing.T) {
	t.Parallel()
	var told []drover.Event
	f := New(store.New(), OnEvents(func(e drover.Events) { told = append(told, e.Events...) }))
	policy := &fleet.Policy{Name: "std", NodePool: "cloud", Provider: "x"}
	at := time.Unix(1000, 0).UTC()
	for n, c := range []command.Command{
		&command.InitFleet{Identity: fleet.Identity{Owner: "me", Key: []byte("k")}},
		&command.InitFleet{Identity: fleet.Identity{Owner: "other"}},
		&command.PutFleetPools{Pools: []*fleet.Pool{{Name: "std", Policy: policy}}},
		&command.UpdateFleet{Put: []*fleet.InstanceRecord{{Durable: fleet.Durable{
			ID: "i1", Pool: "std", State: fleet.InstanceCreating,
			PlannedAt: at,
		}}}},
		&command.BindFleetNode{Instance: "i1", Node: "n1"},
		&command.UpdateFleet{
			Put: []*fleet.InstanceRecord{{Durable: fleet.Durable{
				ID: "i1", Pool: "std", State: fleet.InstanceActive, PlannedAt: at,
				Charged: 2,
			}}},
			Costs:   []fleet.Cost{{Day: "2026-01-01", Pool: "std", Job: "j", Cost: 1}, {Day: "2026-01-01", Pool: "std", Job: "j", Cost: 1.5}},
			Learned: &fleet.Memory{Provider: "x", Text: []byte("a")},
		},
	} {
		_, err := apply(t, f, uint64(n+10), c)
		require.NoError(t, err)
	}
	_, err := apply(t, f, 20, &command.BindFleetNode{Instance: "i1", Node: "n2"})
	require.Equal(t, drover.Conflict, drover.CodeOf(err), "a token is used once")
	_, err = apply(t, f, 21, &command.BindFleetNode{Instance: "i2", Node: "n2"})
	require.Equal(t, drover.NotFound, drover.CodeOf(err))
	var types []string
	for _, e := range told {
		types = append(types, e.Topic+"/"+e.Type)
	}
	require.ElementsMatch(t, []string{
		"NodePool/NodePoolUpserted", "FleetPool/FleetPoolUpserted", "Instance/InstanceCreating",
		"Instance/InstanceActive",
	}, types)

	var buf bytes.Buffer
	require.NoError(t, f.Snapshot(&buf))
	again := New(store.New(), nil)
	require.NoError(t, again.Restore(&buf))
	require.Equal(t, f.Hash(), again.Hash())
	s := again.Store().Snapshot()
	require.Equal(t, "me", s.FleetIdentity().Owner)
	require.Equal(t, "a", string(s.FleetMemory("x").Text))
	require.Nil(t, s.FleetMemory("y"))
	require.Equal(t, "cloud", s.FleetPool("std").Policy.NodePool)
	require.NotNil(t, s.NodePool("cloud"))
	i := s.FleetInstance("i1")
	require.Equal(t, "n1", i.NodeID)
	require.Equal(t, fleet.InstanceActive, i.State)
	require.True(t, at.Equal(i.PlannedAt))
	for c := range s.FleetCosts("") {
		require.InDelta(t, 2.5, c.Cost, 1e-9)
	}
	_, err = apply(t, again, 30, &command.UpdateFleet{Forget: []string{"i1"}})
	require.NoError(t, err)
	_, err = apply(t, again, 31, &command.DeleteFleetPools{Names: []string{"std", "nobody"}})
	require.NoError(t, err)
	require.Nil(t, again.Store().Snapshot().FleetInstance("i1"))
	require.Nil(t, again.Store().Snapshot().FleetPool("std"))
}

// TestPoolsAreAppliedToWhatWasSeen: who saw other pools changes none.
func TestPoolsAreAppliedToWhatWasSeen(t *testing.T) {
	t.Parallel()
	f := New(store.New(), nil)
	pool := func(most int) []*fleet.Pool {
		return []*fleet.Pool{{Name: "std", Policy: &fleet.Policy{Name: "std", NodePool: "default", Max: most}}}
	}
	_, err := apply(t, f, 10, &command.ApplyFleetPools{Pools: pool(1), Version: 3})
	require.Equal(t, drover.Conflict, drover.CodeOf(err), "there is none")
	_, err = apply(t, f, 11, &command.ApplyFleetPools{Pools: pool(1)})
	require.NoError(t, err)
	_, err = apply(t, f, 12, &command.PutFleetPools{Pools: pool(2)})
	require.NoError(t, err)
	_, err = apply(t, f, 13, &command.ApplyFleetPools{Pools: pool(3), Version: 11})
	require.Equal(t, drover.Conflict, drover.CodeOf(err))
	require.ErrorContains(t, err, "they are at version 12 and not 11")
	require.Equal(t, 2, f.Store().Snapshot().FleetPool("std").Policy.Max)
	_, err = apply(t, f, 14, &command.ApplyFleetPools{Pools: pool(3), Version: 12})
	require.NoError(t, err)
	require.Equal(t, 3, f.Store().Snapshot().FleetPool("std").Policy.Max)
}
