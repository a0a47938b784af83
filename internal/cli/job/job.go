package job

import (
	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/alloc"
	"github.com/drover-project/drover/internal/cli/term"
)

// Command is "drover job".
func Command(app *term.App) *cobra.Command {
	return term.Group("job", "Run and watch jobs",
		runCommand(app), planCommand(app), validateCommand(app), statusCommand(app), inspectCommand(app),
		stopCommand(app), historyCommand(app), revertCommand(app), scaleCommand(app), evalCommand(app),
		dispatchCommand(app), allocsCommand(app), periodicCommand(app), alloc.ActionCommand(app), alloc.ActionsCommand(app),
		initCommand(app), deploymentsCommand(app), promoteCommand(app),
		startCommand(app), tagCommand(app), scalingEventsCommand(app), restartCommand(app))
}
