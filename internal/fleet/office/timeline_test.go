package office

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
)

// TestTimeline: a machine that is gone has its whole life, with when it was drained and returned from the audit log. One that
// went before the span is not there, and of too many the last ones are.
func TestTimeline(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	minute := func(n int) time.Time { return w.now.Add(time.Duration(n-60) * time.Minute) }
	row := func(d fleet.Durable) { w.rows[d.ID] = &fleet.InstanceRecord{Durable: d} }
	row(fleet.Durable{
		ID: "m1", Pool: "p", State: fleet.InstanceGone, PlannedAt: minute(0), CreatedAt: minute(1), ReadyAt: minute(3), IdleAt: minute(20),
		StateAt: minute(32), GoneAt: minute(32), Bought: "work waits", Reason: "idle for long", Charged: 0.2,
	})
	w.audit.Add(fleet.Audit{At: minute(30), Pool: "p", Several: []string{"m1", "m2"}, What: "drain", Reason: "idle"})
	w.audit.Add(fleet.Audit{At: minute(31), Pool: "p", Instance: "m1", What: "destroy", Reason: "drained"})
	row(fleet.Durable{ID: "m0", Pool: "p", State: fleet.InstanceGone, PlannedAt: minute(-600), GoneAt: minute(-500)})
	row(fleet.Durable{ID: "m2", Pool: "q", State: fleet.InstanceGone, PlannedAt: minute(10), GoneAt: minute(40)})

	got, err := w.Timeline(t.Context(), "", time.Hour, 10)
	require.NoError(t, err)
	require.Len(t, got.Machines, 2)
	require.Equal(t, "m2", got.Machines[0].ID, "the last one first")
	m := got.Machines[1]
	require.Equal(t, "work waits", m.Bought)
	var names []fleet.PhaseName
	for i, p := range m.Phases {
		names = append(names, p.Name)
		if i > 0 {
			require.Equal(t, p.From, m.Phases[i-1].To)
		}
	}
	require.Equal(t, []fleet.PhaseName{
		fleet.PhaseAsked, fleet.PhaseBooting, fleet.PhaseActive, fleet.PhaseIdle, fleet.PhaseDraining, fleet.PhaseReturning,
	}, names)
	require.Equal(t, minute(32), m.Phases[5].To)
	require.Equal(t, "idle", m.Phases[4].Reason)

	got, err = w.Timeline(t.Context(), "q", time.Hour, 10)
	require.NoError(t, err)
	require.Len(t, got.Machines, 1)
	got, err = w.Timeline(t.Context(), "", 20*time.Hour, 1)
	require.NoError(t, err)
	require.Equal(t, 2, got.More)
	for _, wrong := range []struct {
		since time.Duration
		most  int
	}{{time.Second, 1}, {time.Hour, 0}, {1000 * time.Hour, 1}} {
		_, err := w.Timeline(t.Context(), "", wrong.since, wrong.most)
		require.Equal(t, drover.Invalid, drover.CodeOf(err))
	}
}

// TestADrainThatWasCalledOff: the machine takes work again.
func TestADrainThatWasCalledOff(t *testing.T) {
	t.Parallel()
	at := func(n int) time.Time { return time.Unix(int64(n), 0) }
	d := fleet.Durable{State: fleet.InstanceActive, PlannedAt: at(1), CreatedAt: at(2), ReadyAt: at(3), StateAt: at(9), Reason: "work came"}
	var names []fleet.PhaseName
	list := d.Phases([]fleet.Audit{{At: at(5), What: "drain"}, {At: at(6), What: "draining"}})
	for _, p := range list {
		names = append(names, p.Name)
	}
	require.Equal(t, []fleet.PhaseName{fleet.PhaseAsked, fleet.PhaseBooting, fleet.PhaseActive, fleet.PhaseDraining, fleet.PhaseActive}, names)
	require.Zero(t, list[4].To)
}
