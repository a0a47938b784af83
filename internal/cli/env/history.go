package env

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/client"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/cli/term"
)

// historyCommand is "drover env history".
func historyCommand(app *term.App) *cobra.Command {
	o, since, step := &term.Output{}, time.Hour, time.Duration(0)
	run := func(ctx context.Context, c *client.Client, args []string) error {
		only := ""
		if len(args) > 0 {
			only = args[0]
		}
		h, err := c.History(ctx, only, since, step)
		if err != nil {
			return err
		}
		if done, err := o.Data(app.Out, h); done {
			return err
		}
		var rows [][]string
		for i := range h.Pools {
			p := &h.Pools[i]
			rows = append(rows, []string{
				execution.Key(p.Namespace, p.Environment), least(p.Warm), most(p.Claimed), most(p.Waiting),
				strconv.FormatInt(p.Claims.All.Count, 10), shortly(p.Claims.All.P50), shortly(p.Claims.All.P95), shortly(p.Claims.All.P99),
				strconv.FormatInt(p.Starts.All.Count, 10), shortly(p.Starts.All.P50), shortly(p.Starts.All.P95), shortly(p.Starts.All.P99),
				strconv.FormatInt(p.FirstBytes.All.Count, 10), shortly(p.FirstBytes.All.P50), shortly(p.FirstBytes.All.P95),
				shortly(p.FirstBytes.All.P99),
			})
		}
		if h.Missing > 0 {
			fmt.Fprintf(app.Err, "Nothing is kept of %d other environments.\n", h.Missing)
		}
		return term.Table(app.Out, "Nothing is known of that time: the server may have been started anew.",
			"Name|Least warm|Most claimed|Most waiting|Claims|p50|p95|p99|Starts|p50|p95|p99|First bytes|p50|p95|p99", rows)
	}
	c := term.NativeCommand(app, "history [ENVIRONMENT]", "Say how pools stood, and how long claims, starts and first outputs took", 0, 1, run)
	term.Describe(c, `
Says of each environment, or of one, how few runners were warm and how many claims waited at most since a time ago, how many claims and
commands there were and how many of these wrote something, and how long half, 95 and 99 of 100 took at most. Servers keep that in memory,
for six hours; with several it is what the leader saw. -json has all steps.`,
		"drover env history\ndrover env history -since 10m python\ndrover env history -since 6h -step 5m -json")
	o.Bind(c.Flags())
	c.Flags().DurationVar(&since, "since", since, "how far back, at most 6h")
	c.Flags().DurationVar(&step, "step", 0, "of -json, a multiple of 10s, of since at most; default: one of 120 steps")
	return c
}

// known are the values that are.
func known(values []int) []int {
	return slices.DeleteFunc(slices.Clone(values), func(v int) bool { return v < 0 })
}

func least(values []int) string {
	if values = known(values); len(values) == 0 {
		return "-"
	}
	return strconv.Itoa(slices.Min(values))
}

func most(values []int) string {
	if values = known(values); len(values) == 0 {
		return "-"
	}
	return strconv.Itoa(slices.Max(values))
}

// shortly is a latency to two digits, since it is not known better.
func shortly(d time.Duration) string {
	switch {
	case d == 0:
		return "-"
	case d < 10*time.Millisecond:
		return d.Round(100 * time.Microsecond).String()
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	}
	return d.Round(100 * time.Millisecond).String()
}
