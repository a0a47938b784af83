package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/client"
	"github.com/drover-project/drover/client/fastpath"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
	"github.com/drover-project/drover/internal/clock"
)

// figure is one measured number.
type figure struct {
	Figure string  `json:"figure"`
	Value  float64 `json:"value"`
	Unit   string  `json:"unit"`
	Goal   string  `json:"goal,omitempty"`
	Peer   string  `json:"peer,omitempty"` // what a peer was measured at on such a machine
}

// bench measures an agent that it starts for itself.
type bench struct {
	app      *term.App
	client   *client.Client
	api      *api.Client
	agent    *exec.Cmd
	addr     string      // of the agent: its URL
	others   []*exec.Cmd // of the same cluster: what they spend counts too
	now      func() time.Time
	figures  []figure
	quick    bool
	markdown bool // the table is for docs/performance.md

	driver, image string // of environments; "": sandbox, host
	prefix        string // of figures' names
	config        string // of the agent, beside what all have
	few           bool   // what is measured is slow: fewer repetitions, smaller pools
	repeat        int    // how many cycles; 0 = as many as usual
}

// Commands returns "drover bench" and the hidden commands that it fills a data folder and simulates nodes with.
func Commands(fill FillFunc) func(app *term.App) []*cobra.Command {
	return func(app *term.App) []*cobra.Command {
		return []*cobra.Command{benchCommand(app), fillCommand(app, fill), nodesCommand(app)}
	}
}

// benchCommand returns "drover bench", with the measurement of runners as a command below it.
func benchCommand(app *term.App) *cobra.Command {
	var quick, markdown bool
	var only, with string
	c := &cobra.Command{
		Use: "bench", Short: "Measure this machine: claims, executions, jobs; prints JSON lines, then a table", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			pattern, err := regexp.Compile(only)
			if err != nil {
				return drover.Errorf(drover.Invalid, "-only: %w", err)
			}
			b := &bench{app: app, now: clock.Wall{}.Now, quick: quick, markdown: markdown}
			if err := b.read(with); err != nil {
				return err
			}
			return b.run(cmd.Context(), pattern)
		},
	}
	c.Flags().BoolVar(&quick, "quick", false, "a tenth of the repetitions")
	c.Flags().BoolVar(&markdown, "markdown", false, "print the table as Markdown, as docs/performance.md has it")
	c.Flags().StringVar(&only, "only", "", "run the parts that match this expression: executions, cycles, fill, burst, output, jobs, idle, "+
		"crowd, sandbox, checks, services, templates, changes, artifact, state, sessions, docker-env, docker-exec, stats, fleet, cluster, access")
	c.Flags().StringVar(&with, "with", "", "a file of figures (JSON lines) measured elsewhere, to print with these")
	c.AddCommand(runnersCommand(app), clusterCommand(app))
	return c
}

// read takes over figures that were measured elsewhere.
func (b *bench) read(path string) error {
	if path == "" {
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return drover.Errorf(drover.Invalid, "-with: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		var f figure
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			return drover.Errorf(drover.Invalid, "-with: %w", err)
		}
		b.report(f.Figure, f.Value, f.Unit, f.Goal, f.Peer)
	}
	return nil
}

// run measures the parts whose names match, in a fixed order, and prints the table. The first error ends it, and the
// figures until then were printed as lines.
func (b *bench) run(ctx context.Context, only *regexp.Regexp) error {
	parts := []struct {
		name  string
		run   func(context.Context) error
		alone bool // it starts its own agent
	}{
		{"executions", b.executions, false},
		{"cycles", b.cycles, false},
		{"fill", b.fill, false},
		{"burst", b.burst, false},
		{"output", b.output, false},
		{"jobs", b.jobs, false},
		{"idle", b.idle, false},
		{"crowd", b.crowd, false},
		{"sandbox", b.sandbox, false},
		{"checks", b.checks, false},
		{"services", b.services, false},
		{"templates", b.templates, false},
		{"changes", b.changes, true},
		{"artifact", b.artifact, false},
		{"state", b.state, true},
		{"sessions", b.sessions, false},
		{"docker-env", b.dockerEnv, true},
		{"docker-exec", b.dockerExec, false},
		{"stats", b.taskStats, true},
		{"fleet", b.fleet, true},
		{"cluster", b.cluster, true},
		{"access", b.access, true},
	}
	for _, p := range parts {
		if !only.MatchString(p.name) {
			continue
		}
		run := func(ctx context.Context) error { return b.with(ctx, p.run) }
		if p.alone {
			run = p.run
		}
		if err := run(ctx); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return b.table()
}

// baseConfig is of all agents that are measured: their machine has room for whatever is tried.
const baseConfig = `plugin "mock_driver" {
  config {
    enabled = true
  }
}
client {
  gc_max_allocs     = 5000
  memory_total_mb   = 1000000
  cpu_total_compute = 10000000
  disk_total_mb     = 10000000
  artifact {
    allow = ["127.0.0.0/8"]
  }
}
`

// with runs one part against an agent of its own, so that parts do not disturb each other.
func (b *bench) with(ctx context.Context, part func(context.Context) error) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	// Every agent has a folder of its own, which goes with it: no part sees what another one left.
	dir, err := os.MkdirTemp("", "drover-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	config := dir + "/bench.hcl"
	if err := os.WriteFile(config, []byte(baseConfig+b.config), 0o600); err != nil {
		return err
	}
	read, write := io.Pipe()
	agentCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	b.agent = exec.CommandContext(agentCtx, self, "agent", "-dev", "-data-dir", dir+"/data", "-config", config, "-http-port", "0",
		"-log-level", "error")
	b.agent.Stdout, b.agent.Stderr = write, b.app.Err
	// SIGTERM lets the agent end in order; after half a minute it is killed.
	b.agent.Cancel = func() error { return b.agent.Process.Signal(syscall.SIGTERM) }
	b.agent.WaitDelay = 30 * time.Second
	if err := b.agent.Start(); err != nil {
		return err
	}
	defer func() { cancel(); _ = write.Close(); _ = b.agent.Wait() }()
	var addr string
	// The agent prints this line once it serves. Its port is chosen by the kernel.
	if _, err := fmt.Fscanf(read, "==> Drover agent is serving on %s", &addr); err != nil {
		return fmt.Errorf("waiting for the agent: %w", err)
	}
	go func() { _, _ = io.Copy(io.Discard, read) }() // ends when the pipe is closed
	if b.client, err = client.New(addr, client.WithHTTPClient(&http.Client{Transport: fastpath.New(nil)})); err != nil {
		return err
	}
	b.api, b.addr = newAPI(addr), addr
	return part(ctx)
}

// report prints a figure as a line of JSON at once, so that a bench that is interrupted loses nothing, and keeps it for
// the table. An empty goal or peer means that there is none.
func (b *bench) report(name string, value float64, unit, goal, peer string) {
	f := figure{b.prefix + name, value, unit, goal, peer}
	b.figures = append(b.figures, f)
	line, err := json.Marshal(f)
	if err == nil {
		fmt.Fprintln(b.app.Out, string(line))
	}
}

// table prints all figures in the order in which they were measured.
func (b *bench) table() error {
	if b.markdown {
		fmt.Fprintf(b.app.Out, "\n| figure | measured | goal | peer |\n|---|---|---|---|\n")
		for _, f := range b.figures {
			fmt.Fprintf(b.app.Out, "| %s | %.4g %s | %s | %s |\n", f.Figure, f.Value, f.Unit, f.Goal, f.Peer)
		}
		return nil
	}
	w := tabwriter.NewWriter(b.app.Out, 2, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nfigure\tmeasured\tgoal\tpeer, measured on such a machine")
	for _, f := range b.figures {
		fmt.Fprintf(w, "%s\t%.4g %s\t%s\t%s\n", f.Figure, f.Value, f.Unit, f.Goal, f.Peer)
	}
	return w.Flush()
}

// n scales a number of repetitions.
func (b *bench) n(full int) int {
	switch {
	case b.few:
		return max(10, full/100)
	case b.quick:
		return max(10, full/10)
	}
	return full
}

// percentile of durations, in ms.
func percentile(list []time.Duration, p float64) float64 {
	if len(list) == 0 {
		return 0
	}
	// The caller's list keeps its order, which is that of the measurements.
	sorted := slices.Clone(list)
	slices.Sort(sorted)
	i := min(len(sorted)-1, int(p*float64(len(sorted))))
	return float64(sorted[i]) / 1e6
}
