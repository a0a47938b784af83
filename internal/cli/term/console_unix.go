//go:build !windows

package term

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/drover-project/drover/execution"
)

// OnResize calls f with the size after each change, until ctx ends.
func (t *Console) OnResize(ctx context.Context, f func(execution.WindowSize)) {
	changes := make(chan os.Signal, 1)
	signal.Notify(changes, syscall.SIGWINCH)
	defer signal.Stop(changes)
	for {
		select {
		case <-ctx.Done():
			return
		case <-changes:
			f(t.Size())
		}
	}
}
