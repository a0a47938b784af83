package leader

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/control/trigger"
	"github.com/drover-project/drover/internal/id"
)

func TestANodeIsDisconnectedWhileAnAllocationMayComeBack(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	job := func(after time.Duration, pool *drover.WarmPool) *drover.Job {
		return &drover.Job{ID: "j", Namespace: "default", TaskGroups: []*drover.TaskGroup{{
			Name: "g", Pool: pool, Disconnect: &drover.DisconnectStrategy{LostAfter: after},
		}}}
	}
	run := func(j *drover.Job, edit func(*drover.Allocation)) *drover.Allocation {
		a := &drover.Allocation{
			ID: "a", Namespace: "default", JobID: "j", TaskGroup: "g", NodeID: "n", Job: j, DesiredStatus: drover.AllocDesiredRun,
			ClientStatus: drover.AllocClientRunning,
		}
		if edit != nil {
			edit(a)
		}
		return a
	}
	unknown := func(ago time.Duration) func(*drover.Allocation) {
		return func(a *drover.Allocation) {
			a.ClientStatus, a.UnknownSince = drover.AllocClientUnknown, now.Add(-ago).UnixNano()
		}
	}
	for name, tt := range map[string]struct {
		alloc  *drover.Allocation
		away   time.Duration
		status string
	}{
		"no block": {run(job(0, nil), nil), 0, drover.NodeStatusDown},
		"runs":     {run(job(time.Hour, nil), nil), time.Hour, drover.NodeStatusDisconnected},
		"a pool's": {run(job(time.Hour, &drover.WarmPool{}), nil), 0, drover.NodeStatusDown},
		"stopped": {
			run(job(time.Hour, nil), func(a *drover.Allocation) { a.DesiredStatus = drover.AllocDesiredStop }), 0,
			drover.NodeStatusDown,
		},
		"ended": {
			run(job(time.Hour, nil), func(a *drover.Allocation) { a.ClientStatus = drover.AllocClientComplete }), 0,
			drover.NodeStatusDown,
		},
		"unknown":   {run(job(time.Hour, nil), unknown(time.Minute)), 59 * time.Minute, drover.NodeStatusDisconnected},
		"lost soon": {run(job(time.Hour, nil), unknown(time.Hour)), 0, drover.NodeStatusDown},
	} {
		s := store.New()
		txn := s.Begin(1)
		txn.PutNode(&drover.Node{ID: "n", Status: drover.NodeStatusReady})
		txn.PutAllocation(tt.alloc)
		txn.Commit()
		require.Equal(t, tt.away, max(0, Away(s.Snapshot(), "n", now)), name)
		c := down(s.Snapshot(), []string{"n"}, trigger.Maker{IDs: id.NewSeeded(1), Now: now.UnixNano()})
		require.Len(t, c.Nodes, 1, name)
		require.Equal(t, tt.status, c.Nodes[0].Status, name)
	}
}

func TestADisconnectedNodeIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHeartbeats(Config{}.withDefaults(), clock.Wall{})
		h.await("a", time.Minute)
		h.beat("b")
		h.await("b", time.Second)
		time.Sleep(2 * time.Second)
		ids, wait := h.overdue()
		require.Empty(t, ids, "b was heard of")
		require.Equal(t, 18*time.Second, wait)
		time.Sleep(time.Minute)
		ids, _ = h.overdue()
		require.Equal(t, []string{"b", "a"}, ids)
	})
}
