package cli

import "context"

// fleet measures the fleet on simulated clouds; it needs no agent.
func (b *bench) fleet(ctx context.Context) error {
	return b.app.FleetFigures(ctx, b.quick, b.now, func(name string, value float64, unit, goal string) {
		b.report(name, value, unit, goal, "")
	})
}
