package fleet

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/cli/term"
	"github.com/drover-project/drover/internal/config/machines"
)

// simulateCommand is "drover fleet simulate". Nothing is bought and no agent is asked: the policy of the file runs
// against a simulated cloud on virtual time, with the code that decides for real pools.
func simulateCommand(app *term.App, local Local) *cobra.Command {
	o, ask, trace, poolName := &term.Output{}, fleet.Simulation{}, "", ""
	run := func(ctx context.Context, app *term.App, args []string) error {
		if err := readPool(ctx, app, &ask, args[0], poolName); err != nil {
			return err
		}
		if trace != "" {
			var err error
			if ask.Trace, err = os.ReadFile(trace); err != nil {
				return drover.Errorf(drover.Invalid, "-trace: %w", err)
			}
		}
		if local.Simulate == nil {
			return drover.Errorf(drover.NotImplemented, "this program has no simulator")
		}
		list, err := local.Simulate(ctx, ask)
		if err != nil {
			return err
		}
		if done, err := o.Data(app.Out, list); done {
			return err
		}
		return showSimulated(app, list)
	}
	c := term.Command(app, "simulate FILE", "Try a pool's policy on a workload, on virtual time", 1, 1, run)
	term.Describe(c, `FILE has pool blocks as in the agent's fleet block, and perhaps the provider's. Rules are judged by the total: money, and
what waiting is worth by the pool's wait_cost. A trace has a line a task: arrival and run time in seconds, MHz, MB of
memory, and perhaps a priority. The same seed gives the same result.`,
		`drover fleet simulate pool.hcl
drover fleet simulate pool.hcl -workload bursty -per-hour 2000 -compare
drover fleet simulate pool.hcl -trace tasks.txt`)
	f := c.Flags()
	o.Bind(f)
	f.StringVar(&poolName, "pool", "", "which pool of the file; default the only one")
	f.StringVar(&trace, "trace", "", "file with the workload")
	f.StringVar(&ask.Workload, "workload", "daily", "without a trace: poisson, bursty, daily, heavy or burst")
	f.Float64Var(&ask.PerHour, "per-hour", 600, "tasks an hour at the busiest; of burst: tasks at once")
	f.DurationVar(&ask.Run, "run", 10*time.Minute, "mean run time of a task")
	f.DurationVar(&ask.Length, "length", 24*time.Hour, "how long tasks arrive")
	f.Uint64Var(&ask.Seed, "seed", 1, "of everything that is random")
	f.StringVar(&ask.Provider, "provider", "", "whose limits count: loopback, docker or ec2; default the pool's, as far as the file says, "+
		"else ec2")
	f.DurationVar(&ask.Boot, "boot", 0, "median time until a machine takes work; default what is usual with the provider, 45s with ec2")
	f.Float64Var(&ask.Faults, "faults", 0, "share of boots and calls that fail, 0 to 1")
	f.BoolVar(&ask.Compare, "compare", false, "also with the rules of Arvados' dispatcher, of Cluster Autoscaler, of Karpenter, and ours "+
		"with idle = \"1m\"")
	return c
}

// readPool reads from a file the pool that is meant, and its provider's kind and limits if the file has that too.
// Without a name the file must have one pool. Flags come before the file. Errors: Invalid.
func readPool(ctx context.Context, app *term.App, ask *fleet.Simulation, path, name string) error {
	data, err := app.ReadInput(ctx, path)
	if err != nil {
		return err
	}
	list, providers, err := machines.ParseFleet(data, path)
	if err != nil {
		return err
	}
	var names []string
	for _, p := range list {
		if p.Name == name || name == "" && len(list) == 1 {
			ask.Policy = p
		}
		names = append(names, p.Name)
	}
	if ask.Policy == nil {
		return drover.Errorf(drover.Invalid, "-pool: the file has %s; choose one", strings.Join(names, ", "))
	}
	for _, c := range providers {
		if c.Name == ask.Policy.Provider {
			ask.Provider, ask.Max, ask.Room = cmp.Or(ask.Provider, c.Kind()), c.Max, c.Room.Capacity()
		}
	}
	return nil
}

// showSimulated prints a row for each set of rules, and for the first, which is ours, what bound it and how it went.
func showSimulated(app *term.App, list []fleet.Simulated) error {
	var rows [][]string
	for _, r := range list {
		// A bound of 0 means that none was calculated.
		share := ""
		if r.Bound > 0 {
			share = fmt.Sprintf("%.2f", r.Cost/r.Bound)
		}
		rows = append(rows, []string{
			r.Rules, fleet.Money(r.Total), fleet.Money(r.Cost), fleet.Money(r.Waiting), share,
			wait(r.WaitMean), wait(r.WaitP50), wait(r.WaitP95), wait(r.WaitP99),
			fmt.Sprint(r.Tasks), fmt.Sprint(r.Machines), fmt.Sprint(r.Peak), fmt.Sprintf("%.1f", r.Hours), fmt.Sprint(r.Again), fmt.Sprint(r.Redone),
		})
	}
	heading := "Rules|Total|Money|Waiting|x bound|Wait mean|p50|p95|p99|Tasks|Machines|Peak|Machine hours|Re-bought|Redone"
	if err := term.Table(app.Out, "", heading, rows); err != nil {
		return err
	}
	if len(list) == 0 || len(list[0].Points) == 0 {
		return nil
	}
	for _, s := range list[0].Stopped {
		fmt.Fprintf(app.Out, "\nBound by %s: tasks waited for it, %s together.\n", s.What, wait(s.Waited))
	}
	fmt.Fprintln(app.Out, "\nMachines, and waiting tasks below, over", term.Span(list[0].Until))
	chart(app.Out.Write, list[0].Points)
	_, err := fmt.Fprintf(app.Out, "\n%s.\nTotal: money, and what waiting is worth by wait_cost. Bound: the money that a clairvoyant would "+
		"pay at least. Hash %.12s: the same for the same seed.\n", list[0].Cloud, list[0].Hash)
	return err
}

// wait writes a waiting time with a tenth of a second below a minute: the rules differ there.
func wait(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return term.Span(d.Round(time.Second))
}

// chart draws two rows of bars over virtual time, machines above and waiting tasks below. A column shows the highest
// value of its time, so that a short peak is seen. points must not be empty.
func chart(write func([]byte) (int, error), points []fleet.SimulatedPoint) {
	// Of characters: with the labels it fits a terminal of 110 columns.
	const width, height = 100, 8
	machines, waiting := make([]int, width), make([]int, width)
	last := points[len(points)-1].At
	for _, p := range points {
		at := 0
		if last > 0 {
			at = min(int(int64(p.At)*width/int64(last)), width-1)
		}
		machines[at] = max(machines[at], p.Machines)
		waiting[at] = max(waiting[at], p.Waiting)
	}
	for _, row := range []struct {
		values []int
		lines  int
	}{{machines, height}, {waiting, height / 2}} {
		most := 1
		for i, v := range row.values {
			if v == 0 && i > 0 && len(points) < width {
				row.values[i] = row.values[i-1] // fewer points than columns
			}
			most = max(most, row.values[i])
		}
		for l := row.lines; l > 0; l-- {
			label := ""
			if l == row.lines {
				label = fmt.Sprint(most)
			}
			var b strings.Builder
			fmt.Fprintf(&b, "%7s |", label)
			for _, v := range row.values {
				b.WriteRune(bar(v, most, l, row.lines))
			}
			_, _ = write([]byte(strings.TrimRight(b.String(), " ") + "\n")) // a picture is not worth an error
		}
		_, _ = write([]byte(fmt.Sprintf("%7d +%s\n", 0, strings.Repeat("-", width)))) // the same
	}
}

// bar returns what of a column with value v is in line l (1 is the lowest) of so many lines, where most fills them
// all. A value above 0 is always visible, by an eighth at least.
func bar(v, most, l, lines int) rune {
	eighths := v * lines * 8 / most
	if v > 0 {
		eighths = max(eighths, 1)
	}
	switch left := eighths - (l-1)*8; {
	case left <= 0:
		return ' '
	case left >= 8:
		return '█'
	default:
		return []rune(" ▁▂▃▄▅▆▇")[left]
	}
}
