package reconcile

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

func TestRescheduling(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	past := func(delays ...time.Duration) []*drover.RescheduleEvent {
		var out []*drover.RescheduleEvent
		for i, d := range delays {
			at := now.Add(-time.Duration(len(delays)-i) * 10 * time.Second)
			out = append(out, &drover.RescheduleEvent{RescheduleTime: at.UnixNano(), Delay: d})
		}
		return out
	}
	policy := func(function string, edit func(*drover.ReschedulePolicy)) *drover.ReschedulePolicy {
		p := &drover.ReschedulePolicy{
			Delay: new(30 * time.Second), MaxDelay: new(4 * time.Minute), DelayFunction: function, Unlimited: new(true),
		}
		if edit != nil {
			edit(p)
		}
		return p
	}
	limited := func(p *drover.ReschedulePolicy) {
		p.Unlimited, p.Attempts, p.Interval = nil, new(2), new(time.Hour)
	}
	for _, c := range []struct {
		name   string
		policy *drover.ReschedulePolicy
		events []*drover.RescheduleEvent
		want   rescheduling
	}{
		{"no policy", nil, nil, rescheduling{}},
		{"first", policy("exponential", nil), nil, rescheduling{true, now.Add(30 * time.Second), 30 * time.Second}},
		{
			"constant", policy("constant", nil), past(30*time.Second, 30*time.Second),
			rescheduling{true, now.Add(30 * time.Second), 30 * time.Second},
		},
		{"doubles", policy("exponential", nil), past(time.Minute), rescheduling{true, now.Add(2 * time.Minute), 2 * time.Minute}},
		{"is bounded", policy("exponential", nil), past(3 * time.Minute), rescheduling{true, now.Add(4 * time.Minute), 4 * time.Minute}},
		{
			"fibonacci", policy("fibonacci", nil), past(30*time.Second, time.Minute),
			rescheduling{true, now.Add(90 * time.Second), 90 * time.Second},
		},
		{"attempts left", policy("constant", limited), past(0), rescheduling{true, now.Add(30 * time.Second), 30 * time.Second}},
		{"no attempts left", policy("constant", limited), past(0, 0), rescheduling{}},
		{"old attempts do not count", policy("constant", func(p *drover.ReschedulePolicy) {
			limited(p)
			p.Interval = new(15 * time.Second)
		}), past(0, 0), rescheduling{true, now.Add(30 * time.Second), 30 * time.Second}},
	} {
		a := &drover.Allocation{
			ID: "a", TaskStates: map[string]*drover.TaskState{"t": {FinishedAt: now}},
			RescheduleTracker: &drover.RescheduleTracker{Events: c.events},
		}
		require.Equal(t, c.want, reschedulingOf(a, c.policy, now), c.name)
	}
	long := &drover.Allocation{
		ModifyTime: now.UnixNano(), RescheduleTracker: &drover.RescheduleTracker{Events: []*drover.RescheduleEvent{
			{RescheduleTime: now.Add(-time.Hour).UnixNano(), Delay: 4 * time.Minute},
		}},
	}
	require.Equal(t, 30*time.Second, reschedulingOf(long, policy("exponential", nil), now).delay, "a long run starts over")
	forced := &drover.Allocation{DesiredTransition: drover.DesiredTransition{ForceReschedule: new(true)}}
	require.Equal(t, rescheduling{ever: true, at: now}, reschedulingOf(forced, nil, now))
	require.True(t, reschedulingOf(forced, policy("constant", limited), now).ever)
	never := policy("constant", func(p *drover.ReschedulePolicy) { p.Unlimited, p.Attempts = new(false), new(0) })
	require.False(t, reschedulingOf(forced, never, now).ever, "a policy that says never is not forced")
}

func TestTrackerKeepsFew(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	a := &drover.Allocation{ID: "first", NodeID: "n0", ModifyTime: now.UnixNano()}
	p := &drover.ReschedulePolicy{Delay: new(time.Second), Unlimited: new(true)}
	for range 9 {
		tracker := trackerOf(a, p, true, now)
		a = &drover.Allocation{ID: a.ID + "+", NodeID: "n1", ModifyTime: now.UnixNano(), RescheduleTracker: tracker}
	}
	require.Len(t, a.RescheduleTracker.Events, keptReschedules)
	require.Equal(t, "first++++++++", a.RescheduleTracker.Events[4].PrevAllocID)
	require.Same(t, a.RescheduleTracker, trackerOf(a, p, false, now))
}
