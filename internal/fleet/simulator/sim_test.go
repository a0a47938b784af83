package simulator

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

func TestSimulationSmall(t *testing.T) {
	t.Parallel()
	cfg := Config{Seed: 1, Policy: StandardPolicy(), Cloud: StandardCloud(), Work: Poisson(1, 4*time.Hour, Mixed(5*time.Minute), 600)}
	a, err := Run(cfg)
	require.NoError(t, err)
	t.Log(a)
	b, err := Run(cfg)
	require.NoError(t, err)
	require.Equal(t, a.Hash, b.Hash)
}

func TestWorkThatCanNeverRunIsNamed(t *testing.T) {
	t.Parallel()
	work, err := Trace(strings.NewReader("# from the ledger\n0 60 1000 100\n10 60 1000 100000 # too big\n"))
	require.NoError(t, err)
	cfg := Config{Seed: 1, Policy: StandardPolicy(), Cloud: StandardCloud(), Work: work}
	_, err = Run(cfg)
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
	require.ErrorContains(t, err, "the task of line 3, with 1000 MHz and 100000 MB of memory, can never run: "+
		"it fits no type; the biggest, c5.4xlarge, has 16000 MHz and 32768 MB")
	cfg.Work = work[:1]
	cfg.Policy.Budget.PerHour = 0.05
	_, err = Run(cfg)
	require.ErrorContains(t, err, "the pool's limits and budget allow no machine of a type that it fits on")
	cfg.Policy.MaxPrice = 0.01
	_, err = Run(cfg)
	require.ErrorContains(t, err, "the pool may buy nothing")
}

func TestLimitsThatBoundARunAreTold(t *testing.T) {
	t.Parallel()
	cfg := Config{Seed: 1, Policy: StandardPolicy(), Cloud: StandardCloud(), Work: Burst(1, 100, 0, Mixed(5*time.Minute))}
	res, err := Run(cfg)
	require.NoError(t, err)
	require.Empty(t, res.Stopped)
	cfg.Policy.Max = 2
	res, err = Run(cfg)
	require.NoError(t, err)
	require.Greater(t, res.Stopped["the pool's maximum of 2 machines"], time.Hour)
	cfg.Policy.Max = 0
	cfg.Cloud.Quotas = map[string]int64{"c": 2, "m": 0}
	res, err = Run(cfg)
	require.NoError(t, err)
	require.Greater(t, res.Stopped["the quota of c"], time.Hour)
	cfg.Cloud.Quotas, cfg.Policy.Max = nil, 1
	cfg.Work = Poisson(1, time.Hour, Mixed(time.Hour), 2000)
	_, err = Run(cfg)
	require.ErrorContains(t, err, "the pool's maximum of 1 machines is in the way")
}

// Two kinds of work that need machines of different types, in turns at the pool's maximum: none starves, and idle machines
// of the other type make room.
func TestWorkOfTwoSizesSharesAMaximum(t *testing.T) {
	t.Parallel()
	small, big := drover.Capacity{CPU: 1000, MemoryMB: 1024}, drover.Capacity{CPU: 8000, MemoryMB: 16384}
	var work Workload
	for n := range 60 {
		at := time.Duration(n) * 10 * time.Minute
		work = append(work, Task{At: at, Run: 2 * time.Minute, Each: small, Priority: 50},
			Task{At: at, Run: 2 * time.Minute, Each: small, Priority: 50})
		work = append(work, Task{At: at + 5*time.Minute, Run: 2 * time.Minute, Each: big, Priority: 90})
	}
	p := policyOf("", size("small", 1, 0.05), size("big", 8, 0.4))
	p.Max, p.Idle = 2, time.Hour
	res, err := Run(Config{Seed: 1, Policy: p, Cloud: StandardCloud(), Work: work})
	require.NoError(t, err)
	t.Log(res)
	require.Less(t, res.MeanWait(), 90*time.Second, "no more than the boot of one machine, after the end of another")
}
