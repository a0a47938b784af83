// Command drover is Drover: control plane, node agent, execution service and command line in one binary. On other systems
// than Linux it is the command line only.
package main

import (
	"context"
	"os"
	"syscall"

	"github.com/drover-project/drover/internal/cli"
)

func main() {
	evaluate()
	ctx, stop := cli.Interruptible(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	app := &cli.App{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv}
	equip(app)
	code := app.Main(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}
