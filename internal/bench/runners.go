package bench

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"regexp"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/cli/env"
	"github.com/drover-project/drover/internal/cli/term"
	"github.com/drover-project/drover/internal/clock"
)

// published is what others say of themselves, or what was measured of them. None of it is from this machine.
//
// Sources: github.com/computesdk/benchmarks, results of 2026-05-05 (create to the first answered command, 100 times in turn,
// from one cloud machine, so with a network in between), and the projects' own pages and trackers. Poseidon with Nomad 2.0.6
// and docker was measured by us on two cores.
var published = []struct{ who, what, value string }{ // a table
	{"Daytona", "create to first output, median (p95)", "186 ms (492); its page says 27 to 90 ms"},
	{"E2B", "create to first output, median", "491 ms; its page says about 150 ms"},
	{"Blaxel", "create to first output, median", "525 ms"},
	{"Vercel Sandbox", "create to first output, median (p95)", "671 ms (1,062)"},
	{"Modal", "create to first output, median (p95)", "1,723 ms (2,309)"},
	{"Cloudflare Sandbox", "create to first output, median (p95)", "2,056 ms (2,969)"},
	{"Daytona, E2B, Modal", "burst of 100, median to first output", "367, 822 and 2,261 ms"},
	{"Kubernetes agent-sandbox", "claim of a warm sandbox, p99 with 3,600 claims", "851 ms"},
	{"Firecracker", "boot to the guest's init; microVMs a second", "125 ms; 150"},
	{"gVisor", "runsc create and start", "81 to 280 ms"},
	{"Poseidon on Nomad", "claim of a warm runner, p50", "0.7 ms"},
	{"Poseidon on Nomad", "execution to first byte, p50", "198 ms"},
	{"Poseidon on Nomad", "one file in, p50", "112 to 269 ms"},
	{"Poseidon on Nomad", "whole cycles a minute, 8 at once", "125, of which 2 % lost their output"},
	{"docker exec", "to first byte, p50", "84 ms"},
	{"Nomad alloc exec", "to first byte in a raw_exec task, p50", "5.6 ms"},
}

// runnersCommand returns "drover bench runners": the parts of the execution service, on a driver and image of choice.
func runnersCommand(app *term.App) *cobra.Command {
	b := &bench{app: app, now: clock.Wall{}.Now}
	var only string
	c := &cobra.Command{
		Use: "runners", Short: "Measure claims, executions and pools, and print what others publish beside it", Args: cobra.NoArgs,
		Example: "  drover bench runners -quick\n  drover bench runners -driver docker -image busybox\n  drover bench runners -only cycles " +
			"-cycles 100000",
		RunE: func(cmd *cobra.Command, _ []string) error {
			pattern, err := regexp.Compile(only)
			if err != nil {
				return drover.Errorf(drover.Invalid, "-only: %w", err)
			}
			if b.driver == "docker" { // whose daemon starts and removes some a second
				b.few, b.image = true, cmp.Or(b.image, "busybox")
			}
			for _, p := range b.runnerParts() {
				if !pattern.MatchString(p.name) {
					continue
				}
				if err := b.with(cmd.Context(), p.run); err != nil {
					return fmt.Errorf("%s: %w", p.name, err)
				}
			}
			if err := b.table(); err != nil {
				return err
			}
			return printPublished(app)
		},
	}
	c.Flags().BoolVar(&b.quick, "quick", false, "a tenth of the repetitions")
	c.Flags().StringVar(&only, "only", "", "run the parts that match this expression: executions, cycles, fill, burst, output, sessions")
	c.Flags().IntVar(&b.repeat, "cycles", 0, "how many whole cycles; default 10,000, 1,000 with -quick, 40 on docker")
	c.Flags().StringVar(&b.driver, "driver", "", "of the runners: sandbox (default) or docker")
	c.Flags().StringVar(&b.image, "image", "", "of the runners; default \"host\"; it needs sh, echo, dd and cat")
	return c
}

// part is one thing to measure.
type part struct {
	name string
	run  func(context.Context) error
}

// runnerParts are the parts that measure the execution service; they work with every driver.
func (b *bench) runnerParts() []part {
	return []part{
		{"executions", b.executions},
		{"cycles", b.cycles},
		{"fill", b.fill},
		{"burst", b.burst},
		{"output", b.output},
		{"sessions", b.sessions},
	}
}

// printPublished prints other products' figures in a table of their own, never beside ours, as the machines differ.
func printPublished(app *term.App) error {
	w := tabwriter.NewWriter(app.Out, 2, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\npublished by others\tfigure\tvalue")
	for _, p := range published {
		fmt.Fprintf(w, "%s\t%s\t%s\n", p.who, p.what, p.value)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(app.Out, "Theirs are from other machines, most with a network in between: compare the orders of magnitude.")
	return nil
}

// sessions measures what 20 idle terminals and 25 warm runners cost.
func (b *bench) sessions(ctx context.Context) error {
	open, pool, watch := 20, 25, 20*time.Second
	if b.few {
		open, pool, watch = 8, 10, 10*time.Second
	}
	if err := b.environment(ctx, "bench", pool); err != nil {
		return err
	}
	for range open {
		r, err := b.client.Claim(ctx, execution.ClaimRequest{Environment: "bench", Wait: 10 * time.Second})
		if err != nil {
			return err
		}
		s, err := b.client.Execute(ctx, r.ID, execution.Request{Spec: execution.Spec{Argv: []string{"cat"}, TTY: true, Stdin: true}})
		if err != nil {
			return err
		}
		defer func() { _ = s.Close() }()
		// The first frame says that the terminal runs.
		if _, err := s.Next(ctx); err != nil {
			return err
		}
	}
	if err := env.AwaitWarm(ctx, b.client, "bench", pool); err != nil {
		return err
	}
	// An idle runner costs nothing by itself: only what follows the start has to be over before the measurement.
	clock.Sleep(ctx, clock.Wall{}, 3*time.Second) // what starting left to do
	b.report(fmt.Sprintf("CPU of %d idle terminals and %d warm runners", open, pool), b.cpuOver(ctx, watch), "% of a core", "≤ 0.5",
		"Poseidon 55")
	return nil
}

// dockerEnv is the list of figures of executions, on docker, whose own speed bounds the filling.
func (b *bench) dockerEnv(ctx context.Context) error {
	var lack string
	if err := b.with(ctx, func(ctx context.Context) (err error) { lack, err = b.lacks(ctx, "docker"); return err }); err != nil {
		return err
	}
	if lack != "" {
		fmt.Fprintln(b.app.Err, "docker-env is left out:", lack)
		return nil
	}
	b.driver, b.image, b.prefix, b.few = "docker", cmp.Or(b.image, "drover-test/busybox:1"), "docker: ", true // as scripts/docker makes it
	defer func() { b.driver, b.image, b.prefix, b.few = "", "", "", false }()
	for _, p := range b.runnerParts() {
		if err := b.with(ctx, p.run); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

// lacks says why the only node's driver can start nothing; "" if it can.
func (b *bench) lacks(ctx context.Context, driver string) (string, error) {
	var nodes []struct{ Drivers map[string]*drover.DriverInfo }
	if _, err := b.api.Call(ctx, http.MethodGet, "/v1/nodes", nil, nil, &nodes); err != nil {
		return "", err
	}
	for _, n := range nodes {
		if d := n.Drivers[driver]; d != nil && d.Detected && d.Healthy {
			return "", nil
		} else if d != nil {
			return d.HealthDescription, nil
		}
	}
	return "there is no such driver", nil
}
