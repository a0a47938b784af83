package ops

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
)

// OperatorCommand is "drover operator".
func OperatorCommand(app *term.App, archives Archives) *cobra.Command {
	return term.Group("operator", "Look after the servers",
		term.Group("scheduler", "Configure the scheduler", schedulerGetCommand(app), schedulerSetCommand(app)),
		auditCommand(app), raftCommand(app), autopilotCommand(app), gossipCommand(app), rootCommand(app), snapshotCommand(app, archives),
		debugCommand(app), apiCommand(app), metricsCommand(app), clientStateCommand(app, archives))
}

// schedulerAnswer is the part of the API's answer that is used; the index stands in the configuration too.
type schedulerAnswer struct {
	SchedulerConfig *drover.SchedulerConfiguration
}

// schedulerGetCommand is "drover operator scheduler get-config". -json prints the configuration alone, without the
// answer around it.
func schedulerGetCommand(app *term.App) *cobra.Command {
	o := &term.Output{}
	run := func(ctx context.Context, c *api.Client, _ []string) error {
		var r schedulerAnswer
		if _, err := c.Get(ctx, "/v1/operator/scheduler/configuration", nil, &r); err != nil {
			return err
		}
		if done, err := o.Data(app.Out, r.SchedulerConfig); done {
			return err
		}
		s := r.SchedulerConfig
		p := s.PreemptionConfig
		return term.Facts(app.Out, "Algorithm", s.SchedulerAlgorithm, "Memory oversubscription", term.YesNo(s.MemoryOversubscriptionEnabled),
			"Rejects jobs", term.YesNo(s.RejectJobRegistration), "Pauses evaluations", term.YesNo(s.PauseEvalBroker),
			"Preempts for system jobs", term.YesNo(p.SystemSchedulerEnabled), "… sysbatch jobs", term.YesNo(p.SysBatchSchedulerEnabled),
			"… batch jobs", term.YesNo(p.BatchSchedulerEnabled), "… service jobs", term.YesNo(p.ServiceSchedulerEnabled),
			"Modified at", fmt.Sprint(s.ModifyIndex))
	}
	c := term.NomadCommand(app, "get-config", "Show the scheduler's configuration", 0, 0, run)
	o.Bind(c.Flags())
	return c
}

// schedulerSetCommand is "drover operator scheduler set-config". Its defaults are not used: schedulerSet asks which
// flags were given.
func schedulerSetCommand(app *term.App) *cobra.Command {
	var s drover.SchedulerConfiguration
	c := term.Command(app, "set-config", "Change the scheduler's configuration", 0, 0, nil)
	c.RunE = func(cmd *cobra.Command, _ []string) error { return schedulerSet(app, cmd, s) }
	term.Describe(c, "Changes what flags say, and leaves the rest as it is.", `drover operator scheduler set-config -scheduler-algorithm spread
drover operator scheduler set-config -memory-oversubscription=true`)
	fl := c.Flags()
	fl.StringVar(&s.SchedulerAlgorithm, "scheduler-algorithm", "", "binpack or spread")
	fl.BoolVar(&s.MemoryOversubscriptionEnabled, "memory-oversubscription", false, "let memory_max count")
	fl.BoolVar(&s.RejectJobRegistration, "reject-job-registration", false, "take no more jobs")
	fl.BoolVar(&s.PauseEvalBroker, "pause-eval-broker", false, "decide nothing for now")
	fl.BoolVar(&s.PreemptionConfig.SystemSchedulerEnabled, "preempt-system-scheduler", false, "make room for system jobs")
	fl.BoolVar(&s.PreemptionConfig.SysBatchSchedulerEnabled, "preempt-sysbatch-scheduler", false, "… for sysbatch jobs")
	fl.BoolVar(&s.PreemptionConfig.BatchSchedulerEnabled, "preempt-batch-scheduler", false, "… for batch jobs")
	fl.BoolVar(&s.PreemptionConfig.ServiceSchedulerEnabled, "preempt-service-scheduler", false, "… for service jobs")
	return c
}

// schedulerSet reads the configuration, changes what flags say, and writes it if nobody else changed it meanwhile.
// The API replaces it as a whole, so the rest has to be sent along. Errors: Conflict; the API's.
func schedulerSet(app *term.App, cmd *cobra.Command, want drover.SchedulerConfiguration) error {
	ctx := cmd.Context()
	c, err := app.Nomad()
	if err != nil {
		return err
	}
	var r schedulerAnswer
	if _, err := c.Get(ctx, "/v1/operator/scheduler/configuration", nil, &r); err != nil {
		return err
	}
	s := r.SchedulerConfig
	// A flag that was given as false is a change too, so its value alone does not tell.
	set := func(flag string, to *bool, v bool) {
		if cmd.Flags().Changed(flag) {
			*to = v
		}
	}
	if want.SchedulerAlgorithm != "" {
		s.SchedulerAlgorithm = want.SchedulerAlgorithm
	}
	set("memory-oversubscription", &s.MemoryOversubscriptionEnabled, want.MemoryOversubscriptionEnabled)
	set("reject-job-registration", &s.RejectJobRegistration, want.RejectJobRegistration)
	set("pause-eval-broker", &s.PauseEvalBroker, want.PauseEvalBroker)
	to, from := &s.PreemptionConfig, want.PreemptionConfig
	set("preempt-system-scheduler", &to.SystemSchedulerEnabled, from.SystemSchedulerEnabled)
	set("preempt-sysbatch-scheduler", &to.SysBatchSchedulerEnabled, from.SysBatchSchedulerEnabled)
	set("preempt-batch-scheduler", &to.BatchSchedulerEnabled, from.BatchSchedulerEnabled)
	set("preempt-service-scheduler", &to.ServiceSchedulerEnabled, from.ServiceSchedulerEnabled)
	var answer struct{ Updated bool }
	q := api.Query("cas", fmt.Sprint(s.ModifyIndex)) // what we read is what we change
	if err := c.Put(ctx, "/v1/operator/scheduler/configuration", q, s, &answer); err != nil {
		return err
	}
	if !answer.Updated {
		return drover.Errorf(drover.Conflict, "somebody else changed the configuration meanwhile: try again")
	}
	_, err = fmt.Fprintln(app.Out, "The scheduler's configuration is changed.")
	return err
}

// raftPeersCommand is "drover operator raft list-peers": the servers of the raft configuration, whether they answer
// or not.
func raftPeersCommand(app *term.App) *cobra.Command {
	o := &term.Output{}
	c := term.NomadCommand(app, "list-peers", "List the servers of the log", 0, 0, func(ctx context.Context, c *api.Client, _ []string) error {
		var r struct {
			Servers []struct {
				ID, Node, Address, RaftProtocol string
				Leader, Voter                   bool
			}
			Index uint64
		}
		if _, err := c.Get(ctx, "/v1/operator/raft/configuration", nil, &r); err != nil {
			return err
		}
		if done, err := o.Data(app.Out, r); done {
			return err
		}
		var rows [][]string
		for _, s := range r.Servers {
			state := "follower"
			if s.Leader {
				state = "leader"
			}
			rows = append(rows, []string{s.Node, s.ID, s.Address, state, term.YesNo(s.Voter), s.RaftProtocol})
		}
		return term.Table(app.Out, "There are none.", "Node|ID|Address|State|Voter|Protocol", rows)
	})
	o.Bind(c.Flags())
	return c
}
