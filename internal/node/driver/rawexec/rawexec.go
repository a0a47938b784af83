// Package rawexec is the driver raw_exec: a process of the machine, supervised but not isolated.
package rawexec

import (
	"log/slog"

	"drover/internal/clock"
	"drover/internal/node/supervisor"
)

// Config configures the driver.
type Config struct {
	Enabled bool   // off unless enabled: a task has the agent's rights
	DataDir string // where the supervisor's program is installed (supervisor.Binary)
	Clock   clock.Clock
	Log     *slog.Logger
	// Groups makes a task's control groups; nil: none.
	Groups func(taskID string) supervisor.Groups
}
