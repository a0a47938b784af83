package bench

import (
	"context"

	"github.com/drover-project/drover/internal/bench/fleet"
)

// fleet measures the fleet on simulated clouds; it needs no agent.
func (b *bench) fleet(ctx context.Context) error {
	return fleet.Figures(ctx, b.quick, b.now, func(name string, value float64, unit, goal string) {
		b.report(name, value, unit, goal, "")
	})
}
