package cli

import "github.com/spf13/cobra"

func (a *App) jobCommand() *cobra.Command {
	return group("job", "Run and watch jobs",
		a.jobRunCommand(), a.jobPlanCommand(), a.jobValidateCommand(), a.jobStatusCommand(), a.jobInspectCommand(),
		a.jobStopCommand(), a.jobHistoryCommand(), a.jobRevertCommand(), a.jobScaleCommand(), a.jobEvalCommand(),
		a.jobDispatchCommand(), a.jobAllocsCommand(), a.jobPeriodicCommand(), a.jobInitCommand())
}
