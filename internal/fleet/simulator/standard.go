package simulator

import (
	"time"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/provider"
	"github.com/drover-project/drover/internal/fleet/provider/sim"
)

// StandardPolicy is the pool of figures and tests: five types in three zones, paid by the second.
func StandardPolicy() *fleet.Policy {
	p := &fleet.Policy{
		Name: "p", Provider: "sim", Zones: []string{"a", "b", "c"}, Image: "img",
		Types: []fleet.InstanceType{
			size("c5.large", 2, 0.1), size("c5.xlarge", 4, 0.2), size("c5.2xlarge", 8, 0.4),
			size("c5.4xlarge", 16, 0.8), size("m5.xlarge", 4, 0.22),
		},
	}
	p.Canonicalize()
	return p
}

// StandardCloud boots in half a minute and has the rate limits of EC2 for machines; that for calls, of 50 each, it has not.
func StandardCloud() sim.Config {
	return sim.Config{Latency: 300 * time.Millisecond, Caps: provider.Capabilities{
		Idempotent: true, Batch: 50, Visible: 10 * time.Second,
		Rates: map[provider.Call]provider.Rate{
			provider.CallCreate:  {PerSecond: 2, Burst: 1000},
			provider.CallDestroy: {PerSecond: 20, Burst: 1000}, provider.CallList: {PerSecond: 20, Burst: 100}, provider.CallTag: {
				PerSecond: 20,
				Burst:     100,
			},
		},
	}}
}
