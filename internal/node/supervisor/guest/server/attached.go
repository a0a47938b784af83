package server

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/supervisor/pipelink"
	"github.com/drover-project/drover/internal/node/supervisor/wire"
)

// MainAttached is Main where the agent reaches us by stdin and stdout only: see package pipelink. The argument, if there
// is one, is the folder of the main task's logs.
func MainAttached(args []string) int {
	tune()
	err := serveAttached(args)
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, "drover-init:", err)
	return exitNoStart
}

// serveAttached serves until a shutdown or the end of stdin: there is no socket to which another agent could come. Errors: a
// configuration that cannot be read, or a lost stdin.
func serveAttached(args []string) error {
	key, config, err := pipelink.ReceiveBoot(os.Stdin)
	if err != nil {
		return fmt.Errorf("reading the configuration: %w", err)
	}
	boot, err := wire.DecodeBoot(config)
	if err != nil {
		return fmt.Errorf("reading the configuration: %w", err)
	}
	// Without a folder, or without a task that logs, the main task's output is thrown away.
	logDir := -1
	if len(args) > 0 && boot.LogTask != "" {
		if logDir, err = unix.Open(args[0], unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
			return fmt.Errorf("opening the log folder: %w", err)
		}
	}
	children, err := shield()
	if err != nil {
		return err
	}
	s := New(boot, clock.Wall{}, logDir)
	go s.launcher.Reaper.Run(children) // ends with the process
	s.trimLater()
	failed := make(chan error, 1)
	go func() { // ends with stdin
		failed <- pipelink.Accept(os.Stdin, os.Stdout, key, s.clock, func(fd int) {
			go newConn(s, fd).run() // ends when the agent is gone
		})
	}()
	select {
	case <-s.ended:
		return nil
	case err := <-failed:
		return fmt.Errorf("nobody can reach it any more: %w", err)
	}
}
