package cgroup

import (
	"context"
	"errors"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
)

// Sweep removes the groups that keep does not want, with all that runs in them: what an agent left behind that was
// killed between starting a task and writing it down. It returns their names.
func (m *Groups) Sweep(ctx context.Context, clk clock.Clock, keep func(name string) bool) ([]string, error) {
	names, err := m.List()
	if err != nil {
		return nil, err
	}
	var swept []string
	var errs []error
	for _, name := range names {
		if keep(name) {
			continue
		}
		g, err := m.Open(name)
		if drover.CodeOf(err) == drover.NotFound && err != nil {
			continue
		}
		if err == nil {
			err = g.Remove(ctx, clk)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		swept = append(swept, name)
	}
	return swept, errors.Join(errs...)
}
