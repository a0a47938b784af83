package taskmachine

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

// TestQuickEndsAreSlowed: how long a task waits after each of its lives, at the least.
func TestQuickEndsAreSlowed(t *testing.T) {
	t.Parallel()
	quick := func(n int) []time.Duration { return make([]time.Duration, n) }
	slowed := func(times int) string {
		return fmt.Sprintf("; slowed: it ended within a second of its start %d times in a row", times)
	}
	storm := Policy{Attempts: 1_000_000, Interval: time.Hour, Mode: drover.RestartModeDelay}
	patient := storm
	patient.Delay = 15 * time.Second
	exceeded := Policy{Attempts: 1, Interval: 2 * time.Second, Mode: drover.RestartModeDelay}
	for name, c := range map[string]struct {
		policy Policy
		lives  []time.Duration
		delay  time.Duration
		reason string
	}{
		"five are free":           {storm, quick(5), 0, reasonWithin},
		"the sixth":               {storm, quick(6), time.Second, reasonWithin + slowed(6)},
		"the seventh":             {storm, quick(7), 2 * time.Second, reasonWithin + slowed(7)},
		"the tenth":               {storm, quick(10), 16 * time.Second, reasonWithin + slowed(10)},
		"the eleventh":            {storm, quick(11), 30 * time.Second, reasonWithin + slowed(11)},
		"the thousandth":          {storm, quick(1000), 30 * time.Second, reasonWithin + slowed(1000)},
		"just below":              {storm, append(quick(5), time.Second-1), time.Second, reasonWithin + slowed(6)},
		"one that lived":          {storm, append(quick(20), time.Second), 0, reasonWithin},
		"after one that lived":    {storm, append(quick(6), time.Second, 0), 2 * time.Second, reasonWithin + slowed(7)},
		"after one that can":      {storm, append(quick(20), 10*time.Second, 0), 0, reasonWithin},
		"a patient policy":        {patient, quick(9), 15 * time.Second, reasonWithin},
		"too many for the policy": {exceeded, quick(20), 30 * time.Second, reasonDelay + slowed(20)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := View{Policy: c.policy}
			s, now := New(start), start
			var effects []Effect
			for _, life := range c.lives {
				next := Event(Due{})
				if s.Phase == Pending {
					next = Go{}
				}
				for _, ev := range []Event{next, Prepared{}, Started{}} {
					s, _ = Step(v, s, ev, now, 0)
				}
				now = now.Add(life)
				s, effects = Step(v, s, Exited{}, now, 0)
			}
			require.Contains(t, effects, Effect(Wake{c.delay}))
			last := s.State.Events[len(s.State.Events)-1]
			require.Equal(t, c.reason, last.RestartReason)
			require.Equal(t, fmt.Sprintf("%s - Task restarting in %v", c.reason, c.delay), last.DisplayMessage)
			require.Equal(t, int64(c.delay), last.StartDelay)
		})
	}
}

// TestNoPolicyMakesAStormOfRestarts: a task that ends at once, or cannot even be prepared or started, begins some twenty
// times in ten minutes. A slow download that fails is not taken for one that fails at once.
func TestNoPolicyMakesAStormOfRestarts(t *testing.T) {
	t.Parallel()
	v := View{Policy: Policy{Attempts: 1_000_000, Interval: time.Hour, Mode: drover.RestartModeDelay}}
	begun := func(took time.Duration, events ...Event) (n int) {
		s, _ := Step(v, New(start), Go{}, start, 0)
		for now := start; now.Sub(start) < 10*time.Minute && n < 10_000; n++ {
			var effects []Effect
			for i, ev := range events {
				if i == len(events)-1 {
					now = now.Add(took)
				}
				s, effects = Step(v, s, ev, now, 0)
			}
			wake, ok := effects[len(effects)-1].(Wake)
			require.True(t, ok)
			now = now.Add(wake.Delay)
			s, _ = Step(v, s, Due{}, now, 0)
		}
		return n
	}
	require.LessOrEqual(t, begun(time.Millisecond, Prepared{}, Started{}, Exited{}), 30)
	require.LessOrEqual(t, begun(time.Millisecond, Prepared{}, Started{}, Exited{Code: 1}), 30)
	require.LessOrEqual(t, begun(time.Millisecond, Prepared{}, StartFailed{Recoverable: true}), 30)
	require.LessOrEqual(t, begun(time.Millisecond, PrepareFailed{Recoverable: true}), 30)
	require.Equal(t, 300, begun(2*time.Second, PrepareFailed{Recoverable: true}))
}

// TestARequestedRestartIsNotSlowed: the brake is for what ends by itself.
func TestARequestedRestartIsNotSlowed(t *testing.T) {
	t.Parallel()
	s := New(start)
	for range 20 {
		if s.Phase == Pending {
			s, _ = Step(View{}, s, Go{}, start, 0)
		}
		for _, ev := range []Event{Prepared{}, Started{}, Restart{}, Exited{Code: 143, Signal: 15}} {
			s, _ = Step(View{}, s, ev, start, 0)
		}
		require.Equal(t, Preparing, s.Phase)
	}
	require.Zero(t, s.Tracker.Quick)
}
