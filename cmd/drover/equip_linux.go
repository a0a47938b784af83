package main

import (
	"github.com/drover-project/drover/internal/cli"
	"github.com/drover-project/drover/internal/evaluator"
	"github.com/drover-project/drover/internal/fleet/simulator"
	"github.com/drover-project/drover/internal/node/cgroup"
	"github.com/drover-project/drover/internal/node/doctor"
	"github.com/drover-project/drover/internal/node/driver/sandbox"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/sysmon"
)

// evaluate serves, and does not return, in a child process that evaluates what users wrote for an agent.
func evaluate() { evaluator.Child(server.Texts()) }

// equip gives the command line what runs on this machine itself.
func equip(app *cli.App) {
	sysmon.Calm()
	app.RunAgent, app.FillState, app.Try = server.Run, server.FillState, doctor.Run
	app.Overlay, app.Groups = sandbox.Overlay, cgroup.Survey
	app.Simulate, app.CheckFleet, app.FleetFigures = server.Simulate, server.CheckFleet, simulator.Figures
}
