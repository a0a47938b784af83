//go:build !linux

package main

import (
	"context"
	"io"
	"runtime"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/bench"
	"github.com/drover-project/drover/internal/cli"
	clifleet "github.com/drover-project/drover/internal/cli/fleet"
	"github.com/drover-project/drover/internal/cli/ops"
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/control/archive"
)

// evaluate is for an agent's children, of which there are none.
func evaluate() {}

// parts gives the command line what it has in place of an agent's parts, which run on Linux only.
func parts() cli.Parts {
	return cli.Parts{
		Archives: ops.Archives{Inspect: archive.Inspect, State: archive.State},
		RunAgent: func(context.Context, *config.Agent, func() (*config.Agent, error), io.Writer, func(string)) error {
			return elsewhere()
		},
		Fleet: clifleet.Local{
			Check: func(context.Context, *config.Agent, fleet.Check, func(fleet.CheckStep)) error {
				return elsewhere()
			},
			Simulate: func(context.Context, fleet.Simulation) ([]fleet.Simulated, error) {
				return nil, elsewhere()
			},
		},
		Bench: bench.Commands(func(context.Context, string, int, int) (filled, snapshot time.Duration, err error) {
			return 0, 0, elsewhere()
		}),
	}
}

func elsewhere() error {
	return drover.Errorf(drover.NotImplemented, "this needs an agent's parts, which run on Linux only; "+
		"on %s drover is the command line of an agent elsewhere (-address, DROVER_ADDR)", runtime.GOOS)
}
