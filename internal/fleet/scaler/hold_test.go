package scaler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
)

// steadily is the pace of a pool where work of so many cores runs all the time, for so long each piece.
func steadily(cores int64, run time.Duration) Pace {
	p, out := Pace{}, Output{Used: cores * 1000, Need: float64(cores), Unit: 1}
	for at := start.Add(-4 * time.Hour); at.Before(start); at = at.Add(run / time.Duration(cores)) {
		p.Decided(at, &out)
		p.Freed(at, drover.Capacity{CPU: 1000, MemoryMB: 1000})
	}
	p.Decided(start, &out)
	return p
}

func TestHowLongWorkRunsIsLearned(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		run    time.Duration
		within time.Duration
		want   float64 // 1 - exp(-within/run)
	}{
		{time.Minute, 3 * time.Minute, 0.950},
		{10 * time.Minute, 45 * time.Second, 0.072},
		{10 * time.Minute, 0, 0},
		{time.Hour, time.Minute, 0.017},
	} {
		p := &plan{in: &Input{Pace: steadily(20, tt.run)}}
		require.InDelta(t, tt.want, p.renewed(tt.within), 0.01, "%s in %s", tt.run, tt.within)
	}
	require.Zero(t, (&plan{in: &Input{}}).renewed(time.Hour), "where nothing ended, nothing is known")
}

// A machine that has nothing to do is kept for the time of its boot where work is short, else for a moment.
func TestPatienceIsForShortWork(t *testing.T) {
	t.Parallel()
	patience := func(run time.Duration) time.Duration {
		in := input(policy())
		in.Pace = steadily(20, run)
		p := newPlan(&in)
		return p.patience(machine(in.Policy, "x", "c5.large", fleet.InstanceActive))
	}
	require.InDelta(t, 40, patience(10*time.Second).Seconds(), 1, "as long as a boot")
	require.Equal(t, moment, patience(24*time.Hour))
	require.Greater(t, patience(time.Minute), patience(5*time.Minute))
}

func TestBootsAreDearWhereManyPiecesWait(t *testing.T) {
	t.Parallel()
	in := input(policy())
	p := newPlan(&in)
	require.InDelta(t, 1, p.pieces(time.Minute), 1e-9, "nothing is known of how much a machine holds")
	p.counts = counts{busy: 2, work: 8, used: 8000}
	require.InDelta(t, 2.5, p.pieces(time.Minute), 1e-9, "work never ended: 4 on a machine, the first comes alone")
	p.in.Pace = steadily(8, time.Minute)
	require.InDelta(t, 3.5, p.pieces(time.Minute), 0.15, "as many come while it boots, and wait half as long")
}

func TestBigMachinesLingerWhereWorkIsLong(t *testing.T) {
	t.Parallel()
	cost := func(run time.Duration) (small, big float64) {
		in := input(policy(), work("w", 1, 16))
		in.Pace = steadily(100, run)
		p := newPlan(&in)
		p.counts.used = 100_000
		p.demand()
		p.place()
		p.look()
		return p.offers[p.byKey["sim/c5.large/a/on-demand"]].cost, p.offers[p.byKey["sim/c5.4xlarge/a/on-demand"]].cost
	}
	small, big := cost(10 * time.Second)
	longSmall, longBig := cost(25 * time.Minute)
	require.Greater(t, longBig/big, longSmall/small, "the last of sixteen pieces ends later than the last of two")
	_, endless := cost(3 * time.Hour)
	require.InDelta(t, big, endless, 1e-3, "the ends of such long work do not decide")
}
