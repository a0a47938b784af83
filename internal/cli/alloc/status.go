package alloc

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
	"github.com/drover-project/drover/internal/cli/view"
	"github.com/drover-project/drover/usage"
)

// StatusFlags say what of an allocation is shown, and how. "drover status" makes one from its own Output.
type StatusFlags struct {
	term.Output
	// stats asks the node what the tasks use now, so it fails for one that is down; short shows the last event of tasks only.
	stats, short bool
	page         term.Page // of a list
}

// statusCommand is "drover alloc status". Without an allocation it lists all of the namespace.
func statusCommand(app *term.App) *cobra.Command {
	f := &StatusFlags{}
	run := func(ctx context.Context, c *api.Client, args []string) error {
		if len(args) == 0 {
			return list(ctx, app, c, f)
		}
		return Show(ctx, app, c, f, args[0])
	}
	c := term.NomadCommand(app, "status [ALLOC]", "List allocations, or show one with its tasks", 0, 1, run)
	term.Describe(c, "Shows an allocation: its resources and ports, its tasks with what happened to them, and why it was placed where it is.",
		`drover alloc status -search web -status failed,lost -sort -modified
drover alloc status 3f2a
drover alloc status -stats 3f2a
drover alloc status -stats -status running -search web
drover alloc status -t '{{.ClientStatus}}' 3f2a`)
	c.Flags().BoolVar(&f.stats, "stats", false, "show what the tasks use now; of a list, what each allocation does")
	c.Flags().BoolVar(&f.short, "short", false, "of each task only its state and what happened last")
	f.Bind(c.Flags())
	f.page.BindSearch(c.Flags(), `ClientStatus == "running"`, "pending, running, complete, failed, lost, unknown",
		"name, job, node, status, wanted, created or modified")
	return c
}

// list prints the allocations of the chosen namespace, newest first if no other order was asked for. Errors: the API's.
func list(ctx context.Context, app *term.App, c *api.Client, f *StatusFlags) error {
	list := []*drover.AllocationListStub{} // which is [] for programs
	q := f.page.Query(nil)
	if !f.page.Sorted() {
		q.Set("sort", "-created") // pages are cut in it
	}
	h, err := c.Call(ctx, http.MethodGet, "/v1/allocations", q, nil, &list)
	if err != nil {
		return err
	}
	if !f.page.Sorted() {
		view.SortNewestFirst(list) // and by index within an instant
	}
	if done, err := f.Data(app.Out, list); done {
		return err
	}
	if f.stats {
		err = listUsage(ctx, app, c, f, list)
	} else {
		err = view.Allocations(app, &f.Output, list)
	}
	if err != nil {
		return err
	}
	term.More(app, h)
	return nil
}

// Show prints the allocation whose id begins with prefix. With stats it asks the node what the tasks use now, unless
// the allocation has ended. Placement scores need -verbose. Errors: the API's; NotFound; Invalid when several begin
// so.
func Show(ctx context.Context, app *term.App, c *api.Client, f *StatusFlags, prefix string) error {
	v, err := c.Allocation(ctx, prefix)
	if err != nil {
		return err
	}
	if done, err := f.Data(app.Out, v); done {
		return err
	}
	if err := showFacts(app, &f.Output, v); err != nil {
		return err
	}
	if !f.short {
		if err := showPorts(app, v); err != nil {
			return err
		}
	}
	var usage *usage.AllocResourceUsage
	if f.stats && !v.ClientTerminal() {
		if _, err := c.Get(ctx, "/v1/client/allocation/"+v.ID+"/stats", nil, &usage); err != nil {
			return fmt.Errorf("reading what it uses: %w", err)
		}
	}
	if usage != nil && usage.Disk != nil {
		if err := term.Facts(app.Out, "Disk", term.Bytes(float64(usage.Disk.Bytes)), "Measured",
			term.StampNanos(usage.Disk.Timestamp)); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v.TaskStates)) {
		if err := showTask(app, v, name, usage, f.short); err != nil {
			return err
		}
	}
	if f.Verbose && v.Metrics != nil {
		return showPlacement(app, v.Metrics)
	}
	return nil
}

// showFacts prints what the allocation is, what the server wants of it, and which ones it follows or makes room for.
func showFacts(app *term.App, o *term.Output, v *drover.Allocation) error {
	// Health is unknown (empty) until a deployment has judged the allocation.
	healthy := ""
	if d := v.DeploymentStatus; d != nil && d.Healthy != nil {
		healthy = term.YesNo(*d.Healthy)
	}
	claim := ""
	if v.Claim != nil {
		claim = v.Claim.RunnerID + " since " + term.StampNanos(v.Claim.ClaimedAt)
	}
	return term.Facts(app.Out, "ID", v.ID, "Name", v.Name, "Job", v.JobID, "Version", strconv.FormatUint(v.Version(), 10), "Namespace",
		v.Namespace,
		"Node", o.ID(v.NodeID)+" ("+v.NodeName+")", "Status", v.ClientStatus, "Description", v.ClientDescription,
		"Desired", v.DesiredStatus, "Because", v.DesiredDescription, "Healthy", healthy, "Runner", claim,
		"Evaluation", o.ID(v.EvalID), "Deployment", o.ID(v.DeploymentID), "Replaces", o.ID(v.PreviousAllocation),
		"Replaced by", o.ID(v.NextAllocation), "Preempted by", o.ID(v.PreemptedByAllocation),
		"Created", term.StampNanos(v.CreateTime), "Modified", term.StampNanos(v.ModifyTime))
}

// showPorts prints the address of each port; To is the port inside of the task's network, if it is another one.
func showPorts(app *term.App, v *drover.Allocation) error {
	if v.AllocatedResources == nil || len(v.AllocatedResources.Shared.Ports) == 0 {
		return nil
	}
	term.Section(app.Out, "Ports")
	var rows [][]string
	for _, p := range v.AllocatedResources.Shared.Ports {
		to := ""
		if p.To > 0 {
			to = strconv.Itoa(p.To)
		}
		rows = append(rows, []string{p.Label, fmt.Sprintf("%s:%d", p.HostIP, p.Value), to})
	}
	return term.Table(app.Out, "", "Label|Address|To", rows)
}

// showTask prints one task: state, what it may use and uses now, and its events, newest first. usage is nil if it was
// not asked for. If it is to be short, it has the state and the last event only.
func showTask(app *term.App, v *drover.Allocation, name string, usage *usage.AllocResourceUsage, short bool) error {
	s := v.TaskStates[name]
	state := s.State
	if s.Failed {
		state += " (failed)"
	}
	term.Section(app.Out, fmt.Sprintf("Task %q is %s", name, state))
	if short {
		if len(s.Events) == 0 {
			return nil
		}
		e := s.Events[len(s.Events)-1]
		return term.Facts(app.Out, e.Type, strings.TrimSpace(term.StampNanos(e.Time)+" "+e.DisplayMessage))
	}
	cpu, memory := "", ""
	if r := v.AllocatedResources; r != nil && r.Tasks[name] != nil {
		cpu = fmt.Sprintf("%d MHz", r.Tasks[name].Cpu.CpuShares)
		memory = term.Bytes(float64(r.Tasks[name].Memory.MemoryMB) * (1 << 20))
		if most := r.Tasks[name].Memory.MemoryMaxMB; most > 0 {
			memory += ", at most " + term.Bytes(float64(most)*(1<<20))
		}
	}
	if usage != nil && usage.Tasks[name] != nil && usage.Tasks[name].ResourceUsage != nil {
		u := usage.Tasks[name].ResourceUsage
		if u.CpuStats != nil {
			cpu = fmt.Sprintf("%.0f of %s (%.1f %%)", u.CpuStats.TotalTicks, cpu, u.CpuStats.Percent)
		}
		if u.MemoryStats != nil {
			// Drivers report either what the control group counts or the resident set; the larger is nearer to the limit.
			memory = term.Bytes(float64(max(u.MemoryStats.Usage, u.MemoryStats.RSS))) + " of " + memory
		}
	}
	restarts := ""
	if s.Restarts > 0 {
		restarts = strconv.FormatUint(s.Restarts, 10)
	}
	if err := term.Facts(app.Out, "CPU", cpu, "Memory", memory, "Started", term.Stamp(s.StartedAt), "Finished", term.Stamp(s.FinishedAt),
		"Restarts", restarts); err != nil {
		return err
	}
	var rows [][]string
	for _, e := range slices.Backward(s.Events) {
		rows = append(rows, []string{term.StampNanos(e.Time), e.Type, e.DisplayMessage})
	}
	return term.Table(app.Out, "Nothing happened yet.", "Time|Event|Message", rows)
}

// showPlacement prints how the node was chosen: how many nodes were left out and why, and the scores of the best
// ones.
func showPlacement(app *term.App, m *drover.AllocationMetric) error {
	term.Section(app.Out, "Placement")
	if err := term.Facts(app.Out, "Nodes evaluated", strconv.Itoa(m.NodesEvaluated), "Left out", strconv.Itoa(m.NodesFiltered),
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
	return term.Table(app.Out, "", "Node|Score|Of", rows)
}
