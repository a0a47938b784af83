package main

import (
	"drover/internal/cli"
	"drover/internal/evaluator"
	"drover/internal/fleet/simulator"
	"drover/internal/node/cgroup"
	"drover/internal/node/driver/sandbox"
	"drover/internal/server"
	"drover/internal/sysmon"
)

// evaluate serves, and does not return, in a child process that evaluates what users wrote for an agent.
func evaluate() { evaluator.Child(server.Texts()) }

// equip gives the command line what runs on this machine itself.
func equip(app *cli.App) {
	sysmon.Calm()
	app.RunAgent, app.FillState, app.Try = server.Run, server.FillState, server.Try
	app.Overlay, app.Groups = sandbox.Overlay, cgroup.Survey
	app.Simulate, app.CheckFleet, app.FleetFigures = server.Simulate, server.CheckFleet, simulator.Figures
}
