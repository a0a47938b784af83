package main

import (
	"github.com/drover-project/drover/internal/bench"
	"github.com/drover-project/drover/internal/bench/state"
	"github.com/drover-project/drover/internal/cli"
	"github.com/drover-project/drover/internal/cli/doctor"
	"github.com/drover-project/drover/internal/cli/fleet"
	"github.com/drover-project/drover/internal/cli/ops"
	"github.com/drover-project/drover/internal/control/archive"
	"github.com/drover-project/drover/internal/evaluator"
	"github.com/drover-project/drover/internal/fleet/whatif"
	trials "github.com/drover-project/drover/internal/node/doctor"
	"github.com/drover-project/drover/internal/node/examine"
	"github.com/drover-project/drover/internal/node/gitfetch"
	"github.com/drover-project/drover/internal/node/localstate"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/server/fleetplane"
	"github.com/drover-project/drover/internal/server/texts"
	"github.com/drover-project/drover/internal/sysmon"
)

// evaluate serves, and does not return, in a child process that evaluates what users wrote for an agent.
func evaluate() {
	evaluator.Child(texts.Funcs())
	gitfetch.Child()
}

// parts gives the command line what runs on this machine itself.
func parts() cli.Parts {
	sysmon.Relax()
	return cli.Parts{
		Archives: ops.Archives{Inspect: archive.Inspect, State: archive.State, Node: localstate.Print},
		RunAgent: server.Run,
		Doctor:   doctor.Probes{Try: trials.Run, Machine: examine.Machine},
		Fleet:    fleet.Local{Check: fleetplane.Check, Simulate: whatif.Simulate},
		Bench:    bench.Commands(state.Fill),
	}
}
