package alloc

import (
	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/term"
)

// Command is "drover alloc".
func Command(app *term.App) *cobra.Command {
	return term.Group("alloc", "Look into allocations, and run things in them",
		statusCommand(app), checksCommand(app), logsCommand(app), execCommand(app), fsCommand(app),
		stopCommand(app), restartCommand(app), signalCommand(app))
}
