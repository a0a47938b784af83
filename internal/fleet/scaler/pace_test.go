package scaler

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/constraint"
	"github.com/drover-project/drover/fleet"
)

// Where work ends all the time, a little work that waits gets room sooner than a machine could come; much does not.
func TestWorkThatGetsRoomBeforeAMachineComesWaitsForIt(t *testing.T) {
	t.Parallel()
	in := input(policy(), work("w", 1, 4))
	in.Policy.WaitCost = 0.1
	require.NotEmpty(t, Decide(in).Actions, "nothing ends: bought at once")
	for n := range 60 {
		in.Pace.Freed(start.Add(time.Duration(n-60)*time.Second), drover.Capacity{CPU: 500, MemoryMB: 512})
	}
	out := Decide(in)
	require.Empty(t, out.Actions)
	require.Equal(t, 4, out.Awaits)
	require.Contains(t, out.Waiting[0].Reason, "room for 4 is expected sooner")
	require.True(t, out.Wake.After(start) && out.Wake.Before(start.Add(time.Minute)), "until it has cost as much as to buy")

	in.Pace.Decided(start, &out)
	in.Now = out.Wake.Add(time.Second)
	require.NotEmpty(t, Decide(in).Actions, "it took longer than was expected")
	in.Policy.WaitCost = 100
	in.Now = start
	require.NotEmpty(t, Decide(in).Actions, "waiting is too dear")
	in.Policy.WaitCost = 0.1

	in.Now, in.Demand[0].Count = start, 40
	require.NotEmpty(t, Decide(in).Actions, "more waits than ends")

	in.Demand[0].Count, in.Demand[0].Constraints = 4, []*constraint.Constraint{{Operand: "distinct_hosts"}}
	require.NotEmpty(t, Decide(in).Actions, "it can't use just any room")
}

// pooled is a pool of busy and idle machines whose need went on as told, a number of machines every ten seconds.
func pooled(p *fleet.Policy, busy, idle int, needs func(tick int) int) Input {
	in := input(p)
	unit := in.Offerings[0].Price
	for n := range 3600 {
		in.Pace.Decided(start.Add(time.Duration(n-3600)*beat), &Output{Need: unit * float64(needs(n)), Unit: unit})
	}
	for k := range busy + idle {
		i := machine(p, fmt.Sprint(k), "c5.large", fleet.InstanceActive)
		if k < busy {
			i.Work, i.IdleAt, i.Used = 2, time.Time{}, i.Capacity
		} else {
			i.IdleAt = start.Add(-20 * time.Minute)
		}
		in.Instances = append(in.Instances, i)
	}
	return in
}

func returned(in Input) (n int) {
	for _, a := range Decide(in).Actions {
		if a.Why == WhyIdle {
			n++
		}
	}
	return n
}

// What is kept follows from what keeping costs and saves: the more an hour of waiting is worth, and the more the need
// swings, the more.
func TestWhatIsKeptFollowsFromWhatItSaves(t *testing.T) {
	t.Parallel()
	calm := func(int) int { return 20 }
	swinging := func(n int) int { return 20 + 10*(n/12%2) } // ten more every four minutes
	p := policy()
	last := 31
	for _, cost := range []float64{0.05, 0.5, 2, 10} {
		p.WaitCost = cost
		require.Equal(t, 30, returned(pooled(p, 20, 30, calm)), "nothing ever swings")
		n := returned(pooled(p, 20, 30, swinging))
		require.Less(t, n, 31)
		require.LessOrEqual(t, n, last, "waiting at %g", cost)
		last = n
	}
	require.Equal(t, 20, last, "as many are kept as it swings by, no more")

	p.WaitCost = 10
	out := Decide(pooled(p, 20, 30, swinging))
	require.Len(t, out.Held, 10)
	h := out.Held[0]
	require.Greater(t, h.Saves*h.Outlook.Chance, h.Keeping)
	require.Regexp(t, `^kept: needed within \S+ with \d+ %, having none then would cost 0\.\d+, keeping it 0\.\d+$`, h.String())

	p.Idle = 30 * time.Minute
	require.Zero(t, returned(pooled(p, 20, 30, calm)), "somebody said how long")
	p.Idle = 10 * time.Minute
	require.Equal(t, 30, returned(pooled(p, 20, 30, swinging)))
}

// As long as nobody knows how work comes, an idle machine is kept until that cost what having it back would.
func TestWhoKnowsNothingRentsUntilItCostAsMuchAsBuying(t *testing.T) {
	t.Parallel()
	p := policy()
	in := input(p)
	i := machine(p, "x", "c5.large", fleet.InstanceActive)
	i.IdleAt = start.Add(-time.Minute)
	in.Instances = append(in.Instances, i)
	require.Zero(t, returned(in))
	i.IdleAt = start.Add(-11 * time.Minute)
	require.Equal(t, 1, returned(in))
}
