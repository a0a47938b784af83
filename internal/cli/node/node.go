package node

import (
	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/term"
)

// Command is "drover node".
func Command(app *term.App) *cobra.Command {
	return term.Group("node", "Look at nodes, and take them out of use", statusCommand(app), eligibilityCommand(app), drainCommand(app),
		purgeCommand(app), identityCommand(app), introCommand(app), poolCommand(app), metaCommand(app), configCommand(app))
}
