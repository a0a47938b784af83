package nodes

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/fsm"
	"github.com/drover-project/drover/internal/control/store"
)

// alone is a server without others.
type alone struct{ *one }

func (alone) Clustered() bool { return false }

// A node that comes back is eligible again if it was before it left, and if nobody else drained it since.
func TestANodeDrainsItself(t *testing.T) {
	t.Parallel()
	s := store.New()
	o := &one{store: s, fsm: fsm.New(s, nil)}
	index := uint64(0)
	apply := func(c command.Command) { index++; o.apply(t, index, c) }
	drain := func(_ context.Context, r drover.DrainRequest) error {
		c := &command.SetDrain{NodeID: r.NodeID, MarkEligible: r.MarkEligible, Meta: r.Meta, Time: 1}
		c.Event = &drover.NodeEvent{Message: "Node drain canceled", Subsystem: command.DrainEvent}
		if r.Spec != nil {
			c.Strategy = &drover.DrainStrategy{DrainSpec: *r.Spec}
		}
		apply(c)
		return nil
	}
	f := New(Deps{Servers: alone{o}, Store: s, Drain: drain, Clock: clock.Wall{}})
	spec := &drover.DrainSpec{Deadline: time.Hour}
	require.Equal(t, drover.NotFound, drover.CodeOf(f.DrainSelf(t.Context(), "n", spec)))
	apply(&command.RegisterNode{Node: &drover.Node{
		ID: "n", SecretID: "s", Status: drover.NodeStatusReady, SchedulingEligibility: drover.NodeEligible,
	}})
	node := func() *drover.Node { return s.Snapshot().Node("n") }
	back := func() string {
		require.NoError(t, f.DrainSelf(t.Context(), "n", nil))
		return node().SchedulingEligibility
	}
	require.Equal(t, drover.NodeEligible, back(), "it did not leave")

	require.NoError(t, f.DrainSelf(t.Context(), "n", spec))
	require.Equal(t, time.Hour, node().DrainStrategy.Deadline)
	require.Equal(t, drover.NodeIneligible, node().SchedulingEligibility)
	require.Equal(t, drover.NodeEligible, back())
	require.Nil(t, node().DrainStrategy)

	apply(&command.SetEligibility{NodeID: "n", Eligibility: drover.NodeIneligible, Time: 2})
	require.NoError(t, f.DrainSelf(t.Context(), "n", spec))
	require.Equal(t, drover.NodeIneligible, back(), "a person wants no work there")

	apply(&command.SetEligibility{NodeID: "n", Eligibility: drover.NodeEligible, Time: 3})
	require.NoError(t, drain(t.Context(), drover.DrainRequest{NodeID: "n", Spec: &drover.DrainSpec{Deadline: time.Minute}}))
	require.NoError(t, f.DrainSelf(t.Context(), "n", spec))
	require.Equal(t, time.Minute, node().DrainStrategy.Deadline, "a person's drain stays as it is")
	require.Equal(t, drover.NodeIneligible, back())

	// A drain ends by itself. Until the node is back, it may leave again; then people decide.
	complete := func() {
		apply(&command.SetDrain{
			NodeID: "n", Completed: true, Event: &drover.NodeEvent{Message: command.DrainComplete, Subsystem: command.DrainEvent},
		})
	}
	eligible := func(what string) {
		apply(&command.SetEligibility{NodeID: "n", Eligibility: what, Event: &drover.NodeEvent{Message: command.MarkedAs + what}})
	}
	require.NoError(t, drain(t.Context(), drover.DrainRequest{NodeID: "n", MarkEligible: true}))
	for range 2 {
		require.NoError(t, f.DrainSelf(t.Context(), "n", spec))
		complete()
	}
	require.Equal(t, drover.NodeEligible, back(), "it left twice before it said that it is back")
	eligible(drover.NodeIneligible)
	require.Equal(t, drover.NodeIneligible, back(), "a person wants no work there since")
	eligible(drover.NodeEligible)
	require.NoError(t, f.DrainSelf(t.Context(), "n", spec))
	require.NoError(t, drain(t.Context(), drover.DrainRequest{NodeID: "n"}))
	require.Equal(t, drover.NodeIneligible, back(), "a person ended the drain, and wants no work there")

	none := New(Deps{Servers: alone{o}, Store: s, Clock: clock.Wall{}})
	require.Equal(t, drover.NotImplemented, drover.CodeOf(none.DrainSelf(t.Context(), "n", spec)))
}
