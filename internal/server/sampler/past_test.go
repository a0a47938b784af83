package sampler

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/usage"
)

// busyNode uses more with each sample.
type busyNode struct {
	exchange.Workloads
	asked *int
}

func (n busyNode) AllocStats(context.Context, string, string) (*usage.AllocResourceUsage, error) {
	*n.asked++
	return &usage.AllocResourceUsage{ResourceUsage: &usage.ResourceUsage{
		CpuStats: &usage.CpuStats{Percent: float64(*n.asked)}, MemoryStats: &usage.MemoryStats{RSS: uint64(*n.asked) << 20},
	}}, nil
}

func (n busyNode) NodeStats(context.Context) (*usage.HostStats, error) {
	*n.asked++
	return &usage.HostStats{
		CPU: []*usage.HostCPUStats{{Idle: 50}, {Idle: 100}}, Memory: &usage.HostMemoryStats{Used: 7},
	}, nil
}

// TestWhatWasUsedIsKept: of what somebody looks at each step has a number, and steps in which nobody looked have none; half an hour is
// kept, of a bounded number of allocations.
func TestWhatWasUsedIsKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked, status := 0, drover.AllocClientRunning
		s := New(func(id string) *drover.Allocation {
			if id == "none" {
				return nil
			}
			return &drover.Allocation{ID: id, NodeID: "n", Namespace: "team", ClientStatus: status}
		}, func(id string) (exchange.Workloads, error) {
			if id != "n" {
				return nil, drover.Errorf(drover.Unavailable, "node %s is not connected", id)
			}
			return busyNode{asked: &asked}, nil
		}, clock.Wall{})
		all := func(string) bool { return true }
		past := func(id string) usage.Past {
			p, err := s.Past(t.Context(), id, all)
			require.NoError(t, err)
			require.Len(t, p.Memory, len(p.CPU))
			return p
		}
		for _, one := range []struct {
			id   string
			sees func(string) bool
		}{{"none", all}, {"a", func(string) bool { return false }}} {
			_, err := s.Past(t.Context(), one.id, one.sees)
			require.Equal(t, drover.NotFound, drover.CodeOf(err))
		}
		require.Zero(t, asked)
		require.Equal(t, []float64{1}, past("a").CPU)
		time.Sleep(usage.PastStep)
		require.Equal(t, []float64{1, 2}, past("a").CPU)
		time.Sleep(3 * usage.PastStep)
		p := past("a")
		require.Equal(t, []float64{1, 2, -1, -1, 3}, p.CPU)
		require.Equal(t, []int64{1 << 20, 2 << 20, -1, -1, 3 << 20}, p.Memory)
		require.Empty(t, p.Why)
		require.WithinDuration(t, time.Now().Add(-4*usage.PastStep), p.From, usage.PastStep)
		for range 3 * pastSlots {
			time.Sleep(usage.PastStep)
			p = past("a")
			require.LessOrEqual(t, len(p.CPU), int(pastSlots))
		}
		require.Len(t, p.CPU, int(pastSlots))
		require.NotContains(t, p.CPU, -1.0)
		status = drover.AllocClientComplete
		time.Sleep(2 * usage.PastStep)
		before := asked
		p = past("a")
		require.Equal(t, before, asked, "it does not run")
		require.Contains(t, p.Why, "it is complete")
		require.Equal(t, -1.0, p.CPU[len(p.CPU)-1])
		time.Sleep(2 * usage.PastSpan)
		require.Empty(t, past("a").CPU, "it is long ago")
		status = drover.AllocClientRunning
		for i := range mostPasts + 10 {
			require.Len(t, past(fmt.Sprint(i)).CPU, 1)
			time.Sleep(usage.PastStep)
		}
		require.Len(t, s.pasts, mostPasts)
		require.NotEmpty(t, past(fmt.Sprint(mostPasts)).CPU)

		n := s.PastOfNode(t.Context(), "n")
		require.Equal(t, []float64{25}, n.CPU)
		require.Equal(t, []int64{7}, n.Memory)
		before = asked
		require.Equal(t, n, s.PastOfNode(t.Context(), "n"))
		require.Equal(t, before, asked, "it was asked just now")
		n = s.PastOfNode(t.Context(), "away")
		require.Contains(t, n.Why, "not connected")
		require.Empty(t, n.CPU)
	})
}

// TestASampleOfJustNowIsTheNewest: a sample counts for two seconds, also where a step ends in these.
func TestASampleOfJustNowIsTheNewest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		s := New(func(id string) *drover.Allocation {
			return &drover.Allocation{ID: id, NodeID: "n", ClientStatus: drover.AllocClientRunning}
		}, func(string) (exchange.Workloads, error) { return busyNode{asked: &asked}, nil }, clock.Wall{})
		ends := time.Unix(0, (slotOf(time.Now())+1)*int64(usage.PastStep))
		time.Sleep(time.Until(ends) - sampleLasts/4)
		for range 2 {
			p, err := s.Past(t.Context(), "a", func(string) bool { return true })
			require.NoError(t, err)
			require.Equal(t, []float64{1}, p.CPU)
			require.Equal(t, []float64{25}, s.PastOfNode(t.Context(), "n").CPU)
			time.Sleep(sampleLasts / 2)
		}
		require.Equal(t, 2, asked, "one of each")
	})
}

// TestAClockThatStepsBackChangesNothing of what is kept.
func TestAClockThatStepsBackChangesNothing(t *testing.T) {
	t.Parallel()
	var r ring
	r.put(1000, 1, 5)
	r.put(900, 9, 9)
	got := r.read(1001)
	require.Equal(t, []float64{1, -1}, got.CPU)
	require.Equal(t, []int64{5}, r.read(900).Memory)
	require.Empty(t, (&ring{}).read(1000).CPU)
}
