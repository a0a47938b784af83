package main

import (
	"context"
	"os"
	"syscall"

	"github.com/drover-project/drover/internal/cli"
	"github.com/drover-project/drover/internal/cli/term"
	"github.com/drover-project/drover/internal/clock"
)

func main() {
	evaluate()
	ctx, stop := term.Interruptible(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	app := &term.App{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv, Clock: clock.Wall{}}
	code := cli.Main(ctx, app, parts(), os.Args[1:])
	stop()
	os.Exit(code)
}
