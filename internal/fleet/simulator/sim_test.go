package simulator

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drover"
	"drover/internal/fleet/provider"
	"drover/internal/fleet/provider/sim"
)

func policy() *drover.FleetPolicy {
	size := func(name string, cores int64, price float64) drover.InstanceType {
		return drover.InstanceType{Name: name, Capacity: drover.Capacity{CPU: cores * 1000, MemoryMB: cores * 2048, DiskMB: 50000}, Price: price, SpotPrice: price / 3, Interrupted: 0.05}
	}
	p := &drover.FleetPolicy{
		Name: "p", Provider: "sim", Zones: []string{"a", "b", "c"}, Image: "img",
		Types: []drover.InstanceType{size("c5.large", 2, 0.1), size("c5.xlarge", 4, 0.2), size("c5.2xlarge", 8, 0.4), size("c5.4xlarge", 16, 0.8), size("m5.xlarge", 4, 0.22)},
	}
	p.Canonicalize()
	return p
}

func ec2() sim.Config {
	return sim.Config{Latency: 300 * time.Millisecond, Caps: provider.Capabilities{
		Idempotent: true, Batch: 50, Visible: 10 * time.Second,
		Rates: map[provider.Call]provider.Rate{provider.CallCreate: {PerSecond: 2, Burst: 1000}, provider.CallDestroy: {PerSecond: 20, Burst: 1000}, provider.CallList: {PerSecond: 20, Burst: 100}, provider.CallTag: {PerSecond: 20, Burst: 100}},
	}}
}

func TestSimulationSmall(t *testing.T) {
	t.Parallel()
	cfg := Config{Seed: 1, Policy: policy(), Cloud: ec2(), Work: Poisson(1, 4*time.Hour, Mixed(5*time.Minute), 600)}
	a, err := Run(cfg)
	require.NoError(t, err)
	t.Log(a)
	b, err := Run(cfg)
	require.NoError(t, err)
	require.Equal(t, a.Hash, b.Hash)
}
