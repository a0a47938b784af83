package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/internal/clock"
)

// Remove kills what is left in the group, waits for the deaths, and removes its directories and their children.
// Idempotent. Errors: ctx's, with the processes that would not die.
func (g *Group) Remove(ctx context.Context, clk clock.Clock) error {
	g.Close()
	for wait := time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		err := g.removeDirs()
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.EBUSY) {
			return fmt.Errorf("removing cgroup %s: %w", g.name, err)
		}
		if err := g.killAll(); err != nil {
			return fmt.Errorf("killing cgroup %s: %w", g.name, err)
		}
		// A process that was killed still holds the group for as long as the kernel takes it apart; v1 has no
		// event for the end of that.
		if !clock.Sleep(ctx, clk, wait) {
			pids, _ := g.Procs()
			return fmt.Errorf("removing cgroup %s: processes %v are still in it: %w", g.name, pids, ctx.Err())
		}
	}
}

// killAll also kills a supervisor that sits in the group's own tree (v2).
func (g *Group) killAll() error {
	if g.version == V2 {
		if err := write(g.tops[0], "cgroup.kill", "1"); err == nil {
			return nil
		}
	}
	return g.Kill()
}

// removeDirs removes all of the group's directories, children first, without killing. It goes on after an error and
// returns the first one: EBUSY while a process is left, also one that is still dying.
func (g *Group) removeDirs() error {
	var first error
	for _, top := range g.tops {
		if unix.Rmdir(top) == nil {
			continue // nothing was in it
		}
		walk(top, func(d string) {
			err := unix.Rmdir(d)
			if err != nil && !errors.Is(err, fs.ErrNotExist) && first == nil {
				first = &os.PathError{Op: "rmdir", Path: filepath.Base(d), Err: err}
			}
		})
	}
	return first
}
