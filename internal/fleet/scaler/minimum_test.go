package scaler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
)

// dumped is a catalogue whose biggest machine is also the cheapest one.
func dumped() *fleet.Policy {
	p := policy()
	for k := range p.Types {
		if t := &p.Types[k]; t.Name == "c5.4xlarge" {
			t.Price = 0.05
		}
	}
	p.Canonicalize()
	return p
}

func TestTheMinimumIsBoughtOfWhatTheLimitsHaveRoomFor(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		min    int
		limits drover.Capacity
		want   map[string]int
	}{
		{"the cheapest fits", 2, drover.Capacity{}, map[string]int{"c5.4xlarge": 2}},
		{"the cheapest is too big", 2, drover.Capacity{CPU: 8000}, map[string]int{"c5.large": 2}},
		{"the cheapest is too big for its memory", 2, drover.Capacity{MemoryMB: 9000}, map[string]int{"c5.large": 2}},
		{"one of the cheapest fits, and a small one beside it", 3, drover.Capacity{CPU: 18000}, map[string]int{"c5.4xlarge": 1, "c5.large": 1}},
		{"nothing fits", 2, drover.Capacity{CPU: 1000}, map[string]int{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := dumped()
			p.Min, p.Limits = tt.min, tt.limits
			require.Equal(t, tt.want, bought(Decide(input(p))))
		})
	}
}

// TestAMinimumThatIsMissingSaysWhy: no work waits that would.
func TestAMinimumThatIsMissingSaysWhy(t *testing.T) {
	t.Parallel()
	p := policy()
	p.Min = 2
	in := input(p)
	require.Empty(t, Decide(in).Lacks, "they are bought")
	for range 3 {
		for i := range in.Offerings {
			in.Beliefs.BootFailed(start, &in.Offerings[i], p.Template())
		}
	}
	out := Decide(in)
	require.Empty(t, out.Actions)
	require.Regexp(t, `^2 of the 2 machines that are kept at least are missing: sim/c5.large/a/on-demand: 3 of the last 3 did not boot, `+
		`tried again in [0-9ms]+$`, out.Lacks)
	require.False(t, out.Wake.IsZero(), "it is tried again though nothing happens")
	in.Now = out.Wake
	require.NotEmpty(t, Decide(in).Actions)

	p.PauseCreates = true
	require.Empty(t, Decide(in).Lacks, "that is told already")
	p = policy()
	p.Min, p.Limits.CPU = 2, 3000
	require.Equal(t, "1 of the 2 machines that are kept at least are missing: sim/c5.large/a/on-demand: "+
		"the pool's limits have no room for one", Decide(input(p)).Lacks)
}

func TestAHedgeIsBoughtOfWhatTheLimitsHaveRoomFor(t *testing.T) {
	t.Parallel()
	slow := func(limit int64) Input {
		p := dumped()
		p.Limits.CPU = limit
		i := machine(p, "slow", "c5.large", fleet.InstanceBooting)
		i.PlannedAt = start.Add(-3 * time.Minute)
		i.CreatedAt, i.StateAt = i.PlannedAt, i.PlannedAt
		in := input(p, work("w", 2, 1))
		in.Instances = append(in.Instances, i)
		return in
	}
	require.Equal(t, "create 1 c5.4xlarge hedge", kinds(Decide(slow(0))))
	require.Equal(t, "create 1 c5.large hedge", kinds(Decide(slow(8000))), "the cheapest is too big for the limit")
	require.Empty(t, kinds(Decide(slow(3000))), "no machine fits into what is left")
}
