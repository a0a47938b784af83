package scaler

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drover"
)

// Where work ends all the time, a little work that waits gets room sooner than a machine could come; much does not.
func TestWorkThatGetsRoomBeforeAMachineComesWaitsForIt(t *testing.T) {
	t.Parallel()
	in := input(policy(), work("w", 1, 4))
	require.NotEmpty(t, Decide(in).Actions, "nothing ends: bought at once")
	for n := range 60 {
		in.Pace.Freed(start.Add(time.Duration(n-60)*time.Second), drover.Capacity{CPU: 500, MemoryMB: 512})
	}
	out := Decide(in)
	require.Empty(t, out.Actions)
	require.Equal(t, 4, out.Awaits)
	require.Contains(t, out.Waiting[0].Reason, "room for 4 is expected sooner")
	require.Equal(t, start.Add(10*time.Second), out.Wake, "a quarter of what a machine boots")

	in.Pace.Waits(start, true)
	in.Now = out.Wake
	require.NotEmpty(t, Decide(in).Actions, "it took longer than a machine would")

	in.Now, in.Demand[0].Count = start, 40
	require.NotEmpty(t, Decide(in).Actions, "more waits than ends")

	in.Demand[0].Count, in.Demand[0].Constraints = 4, []*drover.Constraint{{Operand: "distinct_hosts"}}
	require.NotEmpty(t, Decide(in).Actions, "it can't use just any room")
}

// While a few idle machines are held against swings, a fall returns the rest.
func TestSwingsAreHeldAndFallsAreNot(t *testing.T) {
	t.Parallel()
	drained := func(busy, idle int, mean float64) (n int) {
		p := policy()
		in := input(p)
		in.Pace.busy, in.Pace.busyAt = mean, start
		for k := range busy + idle {
			i := machine(p, fmt.Sprint(k), "c5.large", drover.InstanceActive)
			if k < busy {
				i.Work, i.IdleAt = 1, time.Time{}
			} else {
				i.IdleAt = start.Add(-20 * time.Minute)
			}
			in.Instances = append(in.Instances, i)
		}
		for _, a := range Decide(in).Actions {
			require.Equal(t, WhyIdle, a.Why)
			n++
		}
		return n
	}
	require.Equal(t, 10, drained(64, 31, 64), "2.7 roots of 64 are held")
	require.Equal(t, 4, drained(64, 38, 80), "a dip of two roots: 0.8 of it more")
	require.Equal(t, 10, drained(64, 31, 200), "a fall")
	require.Equal(t, 5, drained(0, 5, 3), "nothing is busy")
	require.Equal(t, 3, drained(2, 4, 2), "half as many as are busy")
}
