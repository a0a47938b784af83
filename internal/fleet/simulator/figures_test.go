package simulator

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drover/internal/fleet/provider"
)

// figures are printed by `DROVER_FIGURES=1 go test -v -run Figures`: they take a minute.
func TestFiguresCost(t *testing.T) {
	t.Parallel()
	length := 24 * time.Hour
	if os.Getenv("DROVER_FIGURES") == "" {
		length = 6 * time.Hour
	}
	for name, work := range map[string]Workload{
		"daily":  Daily(1, length, Mixed(10*time.Minute), 2000),
		"bursty": Bursty(1, length, Mixed(10*time.Minute), 4000),
		"heavy":  Varying(1, length, Mix{Run: 10 * time.Minute, Heavy: 1.5, Sizes: Mixed(0).Sizes}, 1000, func(time.Duration) float64 { return 1000 }),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res, err := Run(Config{Seed: 1, Policy: policy(), Cloud: ec2(), Work: work})
			require.NoError(t, err)
			t.Log(res)
		})
	}
}

// TestFiguresLarge is a day of a million tasks on about ten thousand machines.
func TestFiguresLarge(t *testing.T) {
	length, perHour := 24*time.Hour, 42000.0
	if os.Getenv("DROVER_FIGURES") == "" {
		length, perHour = 20*time.Minute, 4200
	}
	p := policy()
	p.Types = p.Types[:2]
	mix := Mix{Run: 48 * time.Minute, Sizes: Mixed(0).Sizes[3:]}
	mix.Run = time.Duration(float64(mix.Run) * 0.35 * 2)
	work := Poisson(1, length, mix, perHour)
	began := time.Now() // this measures the simulator itself
	cloud := ec2()
	cloud.Caps.Rates[provider.CallCreate] = provider.Rate{PerSecond: 100, Burst: 2000}
	res, err := Run(Config{Seed: 1, Policy: p, Cloud: cloud, Work: work, Coalesce: 5 * time.Second, Burst: time.Second})
	require.NoError(t, err)
	t.Log(time.Since(began).Round(time.Millisecond), res)
}
