package agent

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/supervisor"
)

const reclaimPatience = 15 * time.Second

// reclaimer ends what an interrupted start left: the agent was killed after a driver had started a supervisor, and
// before it had stored how to find it again. Nothing else would know of that process, and the task would run twice.
func reclaimer(c clock.Clock, log *slog.Logger) func(ctx context.Context, stateDir string) error {
	return func(ctx context.Context, stateDir string) error {
		if _, err := os.Stat(supervisor.SocketPath(stateDir)); errors.Is(err, os.ErrNotExist) {
			return nil
		}
		ctx, cancel := c.WithTimeout(ctx, reclaimPatience)
		defer cancel()
		client, err := supervisor.Connect(ctx, supervisor.SocketPath(stateDir), supervisor.Options{Clock: c, Log: log})
		if errors.Is(err, driver.ErrGone) {
			return nil
		}
		if err != nil {
			return err
		}
		defer func() { _ = client.Close() }()
		log.Warn("ending a task whose start was interrupted", "state", stateDir)
		if err := client.Shutdown(ctx); err != nil && !errors.Is(err, driver.ErrGone) {
			return errors.Join(err, client.Kill())
		}
		return nil
	}
}
