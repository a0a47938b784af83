package cli

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
)

func (a *App) allocStatusCommand() *cobra.Command {
	o := &output{}
	var stats bool
	c := leaf("status [ALLOC]", "List allocations, or show one with its tasks", 0, 1, func(ctx context.Context, args []string) error {
		c, err := a.asks()
		if err != nil {
			return err
		}
		if len(args) == 0 {
			return a.allocList(ctx, c, o)
		}
		return a.allocStatus(ctx, c, o, args[0], stats)
	})
	with(c, "Shows an allocation: its resources and ports, its tasks with what happened to them, and why it was placed where it is.",
		"drover alloc status 3f2a\ndrover alloc status -stats 3f2a\ndrover alloc status -t '{{.ClientStatus}}' 3f2a")
	c.Flags().BoolVar(&stats, "stats", false, "show what the tasks use now")
	o.bind(c.Flags())
	return c
}

func (a *App) allocList(ctx context.Context, c *api, o *output) error {
	var list []*drover.AllocationListStub
	if _, err := c.get(ctx, "/v1/allocations", nil, &list); err != nil {
		return err
	}
	newestFirst(list)
	if done, err := o.data(a.Out, list); done {
		return err
	}
	return a.allocTable(o, list)
}

func (a *App) allocStatus(ctx context.Context, c *api, o *output, prefix string, stats bool) error {
	v, err := c.alloc(ctx, prefix)
	if err != nil {
		return err
	}
	if done, err := o.data(a.Out, v); done {
		return err
	}
	if err := a.allocFacts(o, v); err != nil {
		return err
	}
	if err := a.allocPorts(v); err != nil {
		return err
	}
	var usage *drover.AllocResourceUsage
	if stats && !v.ClientTerminal() {
		if _, err := c.get(ctx, "/v1/client/allocation/"+v.ID+"/stats", nil, &usage); err != nil {
			return fmt.Errorf("reading what it uses: %w", err)
		}
	}
	if usage != nil && usage.Disk != nil {
		if err := facts(a.Out, "Disk", bytesText(float64(usage.Disk.Bytes)), "Measured", nanos(usage.Disk.Timestamp)); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v.TaskStates)) {
		if err := a.taskStatus(v, name, usage); err != nil {
			return err
		}
	}
	if o.verbose && v.Metrics != nil {
		return a.placement(v.Metrics)
	}
	return nil
}

func (a *App) allocFacts(o *output, v *drover.Allocation) error {
	healthy := ""
	if d := v.DeploymentStatus; d != nil && d.Healthy != nil {
		healthy = yes(*d.Healthy)
	}
	claim := ""
	if v.Claim != nil {
		claim = v.Claim.RunnerID + " since " + nanos(v.Claim.ClaimedAt)
	}
	return facts(a.Out, "ID", v.ID, "Name", v.Name, "Job", v.JobID, "Version", strconv.FormatUint(v.Version(), 10), "Namespace", v.Namespace,
		"Node", o.id(v.NodeID)+" ("+v.NodeName+")", "Status", v.ClientStatus, "Description", v.ClientDescription,
		"Desired", v.DesiredStatus, "Because", v.DesiredDescription, "Healthy", healthy, "Runner", claim,
		"Evaluation", o.id(v.EvalID), "Deployment", o.id(v.DeploymentID), "Replaces", o.id(v.PreviousAllocation),
		"Replaced by", o.id(v.NextAllocation), "Preempted by", o.id(v.PreemptedByAllocation),
		"Created", nanos(v.CreateTime), "Modified", nanos(v.ModifyTime))
}

func (a *App) allocPorts(v *drover.Allocation) error {
	if v.AllocatedResources == nil || len(v.AllocatedResources.Shared.Ports) == 0 {
		return nil
	}
	section(a.Out, "Ports")
	var rows [][]string
	for _, p := range v.AllocatedResources.Shared.Ports {
		to := ""
		if p.To > 0 {
			to = strconv.Itoa(p.To)
		}
		rows = append(rows, []string{p.Label, fmt.Sprintf("%s:%d", p.HostIP, p.Value), to})
	}
	return table(a.Out, "", "Label|Address|To", rows)
}

func (a *App) taskStatus(v *drover.Allocation, name string, usage *drover.AllocResourceUsage) error {
	s := v.TaskStates[name]
	state := s.State
	if s.Failed {
		state += " (failed)"
	}
	section(a.Out, fmt.Sprintf("Task %q is %s", name, state))
	cpu, memory := "", ""
	if r := v.AllocatedResources; r != nil && r.Tasks[name] != nil {
		cpu = fmt.Sprintf("%d MHz", r.Tasks[name].Cpu.CpuShares)
		memory = bytesText(float64(r.Tasks[name].Memory.MemoryMB) * (1 << 20))
		if most := r.Tasks[name].Memory.MemoryMaxMB; most > 0 {
			memory += ", at most " + bytesText(float64(most)*(1<<20))
		}
	}
	if usage != nil && usage.Tasks[name] != nil && usage.Tasks[name].ResourceUsage != nil {
		u := usage.Tasks[name].ResourceUsage
		if u.CpuStats != nil {
			cpu = fmt.Sprintf("%.0f of %s (%.1f %%)", u.CpuStats.TotalTicks, cpu, u.CpuStats.Percent)
		}
		if u.MemoryStats != nil {
			memory = bytesText(float64(max(u.MemoryStats.Usage, u.MemoryStats.RSS))) + " of " + memory
		}
	}
	restarts := ""
	if s.Restarts > 0 {
		restarts = strconv.FormatUint(s.Restarts, 10)
	}
	if err := facts(a.Out, "CPU", cpu, "Memory", memory, "Started", stamp(s.StartedAt), "Finished", stamp(s.FinishedAt), "Restarts", restarts); err != nil {
		return err
	}
	var rows [][]string
	for _, e := range slices.Backward(s.Events) {
		rows = append(rows, []string{nanos(e.Time), e.Type, e.DisplayMessage})
	}
	return table(a.Out, "Nothing happened yet.", "Time|Event|Message", rows)
}

// placement tells how the node was chosen.
func (a *App) placement(m *drover.AllocationMetric) error {
	section(a.Out, "Placement")
	if err := facts(a.Out, "Nodes evaluated", strconv.Itoa(m.NodesEvaluated), "Left out", strconv.Itoa(m.NodesFiltered),
		"Without room", strconv.Itoa(m.NodesExhausted), "Took", m.AllocationTime.String()); err != nil {
		return err
	}
	var rows [][]string
	for _, s := range m.ScoreMetaData {
		var parts []string
		for _, k := range slices.Sorted(maps.Keys(s.Scores)) {
			parts = append(parts, fmt.Sprintf("%s=%.3f", k, s.Scores[k]))
		}
		rows = append(rows, []string{s.NodeID, fmt.Sprintf("%.3f", s.NormScore), strings.Join(parts, " ")})
	}
	return table(a.Out, "", "Node|Score|Of", rows)
}

// act finds the allocation of args[0] and does something to it.
func (a *App) act(ctx context.Context, prefix string, do func(*api, *drover.Allocation) error) error {
	c, err := a.asks()
	if err != nil {
		return err
	}
	v, err := c.alloc(ctx, prefix)
	if err != nil {
		return err
	}
	return do(c, v)
}

func (a *App) allocStopCommand() *cobra.Command {
	f := &following{}
	var noDelay bool
	c := leaf("stop ALLOC", "Stop an allocation; its job gets another one", 1, 1, func(ctx context.Context, args []string) error {
		return a.act(ctx, args[0], func(c *api, v *drover.Allocation) error {
			var r registered
			q := url.Values{"no_shutdown_delay": {strconv.FormatBool(noDelay)}}
			if err := c.put(ctx, "/v1/allocation/"+v.ID+"/stop", q, nil, &r); err != nil {
				return err
			}
			return a.follow(ctx, c, r.EvalID, *f)
		})
	})
	c.Flags().BoolVar(&noDelay, "no-shutdown-delay", false, "do not wait for shutdown_delay")
	f.bind(c)
	return c
}

func (a *App) allocRestartCommand() *cobra.Command {
	var task string
	var all bool
	c := leaf("restart ALLOC [TASK]", "Restart the tasks of an allocation in place", 1, 2, func(ctx context.Context, args []string) error {
		if len(args) == 2 {
			task = args[1]
		}
		return a.act(ctx, args[0], func(c *api, v *drover.Allocation) error {
			return c.put(ctx, "/v1/client/allocation/"+v.ID+"/restart", nil, map[string]any{"TaskName": task, "AllTasks": all}, nil)
		})
	})
	c.Flags().StringVar(&task, "task", "", "this task; default: all that run")
	c.Flags().BoolVar(&all, "all-tasks", false, "those that ended too")
	return c
}

func (a *App) allocSignalCommand() *cobra.Command {
	signal, task := "", ""
	c := leaf("signal ALLOC [TASK]", "Send a signal to the tasks of an allocation", 1, 2, func(ctx context.Context, args []string) error {
		if len(args) == 2 {
			task = args[1]
		}
		return a.act(ctx, args[0], func(c *api, v *drover.Allocation) error {
			return c.put(ctx, "/v1/client/allocation/"+v.ID+"/signal", nil, map[string]string{"Task": task, "Signal": signal}, nil)
		})
	})
	c.Flags().StringVarP(&signal, "signal", "s", "SIGKILL", "the signal's name")
	c.Flags().StringVar(&task, "task", "", "this task; default: all")
	return c
}
