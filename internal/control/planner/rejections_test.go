package planner

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

// A node whose plans are refused again and again takes no more work; one that is down or full now and then stays.
func TestNodesWhosePlansAreRefusedAgainAndAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rule   Rejections
		pause  time.Duration
		down   bool
		marked bool
	}{
		"off":                {},
		"often":              {rule: Rejections{Threshold: 3, Window: time.Minute}, pause: time.Second, marked: true},
		"not within":         {rule: Rejections{Threshold: 3, Window: time.Minute}, pause: time.Minute},
		"it takes none":      {rule: Rejections{Threshold: 3, Window: time.Minute}, pause: time.Second, down: true},
		"not often enough":   {rule: Rejections{Threshold: 4, Window: time.Minute}, pause: time.Second},
		"exactly the window": {rule: Rejections{Threshold: 3, Window: time.Minute}, pause: 30 * time.Second, marked: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFakeState()
				f.nodes["n"], f.nodes["well"] = node("n", 1), node("well", 100)
				if c.down {
					f.nodes["n"].Status = drover.NodeStatusDown
				}
				p := newPlanner(f, Config{Rejections: c.rule})
				start(t, p)
				for i := range 3 {
					_, err := p.Submit(t.Context(), place(alloc("a"+strconv.Itoa(i), "n", 2), alloc("b"+strconv.Itoa(i), "well", 2)), nil)
					require.NoError(t, err)
					time.Sleep(c.pause) // simulated
				}
				synctest.Wait()
				n := f.snapshot().Node("n")
				require.Equal(t, c.marked, n.SchedulingEligibility == drover.NodeIneligible)
				require.Equal(t, drover.NodeEligible, f.snapshot().Node("well").SchedulingEligibility)
				if c.marked {
					require.Len(t, n.Events, 1)
					require.Equal(t, "Node marked as ineligible for scheduling: 3 plans were refused for it within 1m0s (server.plan_rejection_tracker)",
						n.Events[0].Message)
				}
			})
		})
	}
}

// However many nodes seem to be ill, a cluster is not stopped by it, and what is counted is bounded.
func TestNotAllNodesAreTakenOutOfService(t *testing.T) {
	t.Parallel()
	r := rejections{Rejections: Rejections{Threshold: 2, Window: time.Minute}, times: map[string][]time.Time{}}
	now := time.Unix(1, 0)
	for i := range 10 * mostCounted {
		n := node(strconv.Itoa(i), 1)
		r.note(n, now)
		r.note(n, now)
		now = now.Add(time.Millisecond)
	}
	require.Len(t, r.due, mostMarked)
	now = now.Add(2 * time.Minute)
	r.note(node("late", 1), now)
	require.LessOrEqual(t, len(r.times), 1, "what is old is forgotten")
	r.note(node("late", 1), now.Add(markedWindow-2*time.Minute))
	now = now.Add(markedWindow)
	r.note(node("late", 1), now)
	r.note(node("late", 1), now)
	require.Len(t, r.due, mostMarked+1)
}
