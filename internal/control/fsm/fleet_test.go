package fsm

import (
	"bytes"
	"compress/gzip"
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

// TestARestoredFleetIsNotAnotherClusters: after a restore into another cluster its own machines are its own yet. Those of the
// archive are marked until a person says that they are ours; within one cluster nothing changes.
func TestARestoredFleetIsNotAnotherClusters(t *testing.T) {
	t.Parallel()
	rows := func(f *FSM, ids ...string) {
		var put []*fleet.InstanceRecord
		for _, id := range ids {
			put = append(put, &fleet.InstanceRecord{Durable: fleet.Durable{ID: id, Pool: "p", State: fleet.InstanceActive}})
		}
		put = append(put, &fleet.InstanceRecord{Durable: fleet.Durable{ID: "gone", State: fleet.InstanceGone}})
		_, err := apply(t, f, f.Store().Index()+1, &command.UpdateFleet{Put: put})
		require.NoError(t, err)
	}
	a, b := New(store.New(), nil), New(store.New(), nil)
	for owner, f := range map[string]*FSM{"a": a, "b": b} {
		_, err := apply(t, f, 10, &command.InitFleet{Identity: fleet.Identity{Owner: owner, Key: []byte(owner)}})
		require.NoError(t, err)
	}
	rows(a, "a1", "a2")
	rows(b, "b1")
	var archived bytes.Buffer
	require.NoError(t, a.Snapshot(&archived))
	var zipped bytes.Buffer
	zip := gzip.NewWriter(&zipped)
	_, err := zip.Write(archived.Bytes())
	require.NoError(t, err)
	require.NoError(t, zip.Close())
	for name, f := range map[string]*FSM{"a": a, "b": b} {
		_, err := apply(t, f, f.Store().Index()+1, &command.RestoreState{ID: "r", Data: zipped.Bytes(), Last: true})
		require.NoError(t, err)
		s := f.Store().Snapshot()
		require.Equal(t, name, s.FleetIdentity().Owner)
		require.Equal(t, "a", string(s.FleetIdentity().Key), "machines of the archive have tokens of its key")
		require.Empty(t, s.FleetInstance("gone").Of)
		require.Nil(t, s.FleetInstance("b1"), "the cloud's list brings it back")
	}
	require.Empty(t, a.Store().Snapshot().FleetInstance("a1").Of)
	require.Empty(t, a.Store().Snapshot().FleetIdentity().Former)
	s := b.Store().Snapshot()
	require.Equal(t, []string{"a"}, s.FleetIdentity().Former)
	require.Equal(t, "a", s.FleetInstance("a1").Of)

	_, err = apply(t, b, s.Index()+1, &command.UpdateFleet{Put: []*fleet.InstanceRecord{{Durable: fleet.Durable{
		ID: "a1", Pool: "p", State: fleet.InstanceRegistered,
	}}}})
	require.NoError(t, err)
	require.Empty(t, b.Store().Snapshot().FleetInstance("a1").Of, "its agent called")
	_, err = apply(t, b, s.Index()+2, &command.NameFleet{Tag: "a"})
	require.NoError(t, err)
	late := &fleet.InstanceRecord{Durable: fleet.Durable{ID: "a2", State: fleet.InstanceOrphaned, Of: "a"}}
	_, err = apply(t, b, s.Index()+3, &command.UpdateFleet{Put: []*fleet.InstanceRecord{late}})
	require.NoError(t, err)
	s = b.Store().Snapshot()
	require.Equal(t, []string{"a"}, s.FleetIdentity().Also)
	require.Empty(t, s.FleetIdentity().Former)
	require.Empty(t, s.FleetInstance("a2").Of, "a loop that did not hear of it yet takes it not back")
}
