package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
)

func (a *App) operatorCommand() *cobra.Command {
	return group("operator", "Look after the servers",
		group("scheduler", "Configure the scheduler", a.schedulerGetCommand(), a.schedulerSetCommand()),
		group("raft", "Look at the raft servers", a.raftPeersCommand()))
}

type schedulerAnswer struct {
	SchedulerConfig *drover.SchedulerConfiguration
}

func (a *App) schedulerGetCommand() *cobra.Command {
	o := &output{}
	c := leaf("get-config", "Show the scheduler's configuration", 0, 0, func(ctx context.Context, _ []string) error {
		c, err := a.asks()
		if err != nil {
			return err
		}
		var r schedulerAnswer
		if _, err := c.get(ctx, "/v1/operator/scheduler/configuration", nil, &r); err != nil {
			return err
		}
		if done, err := o.data(a.Out, r.SchedulerConfig); done {
			return err
		}
		s := r.SchedulerConfig
		p := s.PreemptionConfig
		return facts(a.Out, "Algorithm", s.SchedulerAlgorithm, "Memory oversubscription", yes(s.MemoryOversubscriptionEnabled),
			"Rejects jobs", yes(s.RejectJobRegistration), "Pauses evaluations", yes(s.PauseEvalBroker),
			"Preempts for system jobs", yes(p.SystemSchedulerEnabled), "… sysbatch jobs", yes(p.SysBatchSchedulerEnabled),
			"… batch jobs", yes(p.BatchSchedulerEnabled), "… service jobs", yes(p.ServiceSchedulerEnabled),
			"Modified at", fmt.Sprint(s.ModifyIndex))
	})
	o.bind(c.Flags())
	return c
}

func (a *App) schedulerSetCommand() *cobra.Command {
	var s drover.SchedulerConfiguration
	c := leaf("set-config", "Change the scheduler's configuration", 0, 0, nil)
	c.RunE = func(cmd *cobra.Command, _ []string) error { return a.schedulerSet(cmd, s) }
	with(c, "Changes what flags say, and leaves the rest as it is.", "drover operator scheduler set-config -scheduler-algorithm spread\ndrover operator scheduler set-config -memory-oversubscription=true")
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

func (a *App) schedulerSet(cmd *cobra.Command, want drover.SchedulerConfiguration) error {
	ctx := cmd.Context()
	c, err := a.asks()
	if err != nil {
		return err
	}
	var r schedulerAnswer
	if _, err := c.get(ctx, "/v1/operator/scheduler/configuration", nil, &r); err != nil {
		return err
	}
	s := r.SchedulerConfig
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
	q := query("cas", fmt.Sprint(s.ModifyIndex)) // what we read is what we change
	if err := c.put(ctx, "/v1/operator/scheduler/configuration", q, s, &answer); err != nil {
		return err
	}
	if !answer.Updated {
		return drover.Errorf(drover.Conflict, "somebody else changed the configuration meanwhile: try again")
	}
	_, err = fmt.Fprintln(a.Out, "The scheduler's configuration is changed.")
	return err
}

func (a *App) raftPeersCommand() *cobra.Command {
	o := &output{}
	c := leaf("list-peers", "List the servers that vote", 0, 0, func(ctx context.Context, _ []string) error {
		c, err := a.asks()
		if err != nil {
			return err
		}
		var r struct {
			Servers []struct {
				ID, Node, Address, RaftProtocol string
				Leader, Voter                   bool
			}
			Index uint64
		}
		if _, err := c.get(ctx, "/v1/operator/raft/configuration", nil, &r); err != nil {
			return err
		}
		if done, err := o.data(a.Out, r); done {
			return err
		}
		var rows [][]string
		for _, s := range r.Servers {
			state := "follower"
			if s.Leader {
				state = "leader"
			}
			rows = append(rows, []string{s.Node, s.ID, s.Address, state, yes(s.Voter), s.RaftProtocol})
		}
		return table(a.Out, "There are none.", "Node|ID|Address|State|Voter|Protocol", rows)
	})
	o.bind(c.Flags())
	return c
}
