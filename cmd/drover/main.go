// Command drover is Drover: control plane, node agent, execution service and command line in one binary.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"drover/internal/cli"
	"drover/internal/fleet/simulator"
	"drover/internal/node/driver/sandbox"
	"drover/internal/server"
	"drover/internal/sysmon"
)

func main() {
	sysmon.Calm()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	app := &cli.App{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv, RunAgent: server.Run, FillState: server.FillState, Try: server.Try, Overlay: sandbox.Overlay, Simulate: server.Simulate,
		CheckFleet: server.CheckFleet, FleetFigures: simulator.Figures,
	}
	code := app.Main(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}
