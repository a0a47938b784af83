package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/client"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/env"
	"github.com/drover-project/drover/internal/cli/term"
	"github.com/drover-project/drover/internal/clock"
)

// demoEnvironment stays after the demonstration, so that people can go on with it.
const demoEnvironment = "playground"

// demoPython says what can be seen from inside of a sandbox: who it is, and how few processes there are.
const demoPython = `import os, platform, sys
name = sys.stdin.readline().strip()
print(f"Hello {name}, this is Python {platform.python_version()} in a sandbox.")
print("I am process", os.getpid(), "and user", os.getuid(), "on host", platform.node())
print("and I can see", len([p for p in os.listdir("/proc") if p.isdigit()]), "processes.", file=sys.stderr)
`

// demoShell does the same on a machine without Python.
const demoShell = `read name
echo "Hello $name, this is a shell in a sandbox."
echo "I am process $$ and user $(id -u) on host $(uname -n)"
echo "and I can see $(ls -d /proc/[0-9]* | wc -l) processes." >&2
`

// demonstrate makes an environment, runs a program in one of its warm runners, and shows what came of it. It then
// lists what is served, also after a failure. It returns when all is printed; the agent goes on.
func demonstrate(ctx context.Context, app *term.App, t api.Target) {
	if err := runDemo(ctx, app, t); err != nil && ctx.Err() == nil {
		fmt.Fprintln(app.Err, "Error: the demonstration:", err)
	}
	fmt.Fprintf(app.Out, `
==> Serving on %[1]s until you press Ctrl-C:
    %[1]s/ui/                                the page: write a program and run it
    %[1]s/v1/jobs, /v1/allocations, …        jobs, with Nomad's API (NOMAD_ADDR=%[1]s nomad status)
    %[1]s/api/v1/runners, …                  executions, with Poseidon's API (CodeOcean)
    %[1]s/v1/environments, /v1/runners, …    executions, with Drover's own API (Go package github.com/drover-project/drover/client)
    %[1]s/v1/event/stream, /v1/metrics       what happens, and how much of it
    try:  curl -s %[1]s/v1/run -d '{"environment":"%[2]s","command":"echo hello; id"}'
`, t.Address, demoEnvironment)
}

// runDemo is the demonstration without its closing text; each step is timed by our own clock. Errors: those of the
// API, if the machine cannot run sandboxes for instance.
func runDemo(ctx context.Context, app *term.App, t api.Target) error {
	c, err := demoClient(t)
	if err != nil {
		return err
	}
	now := clock.Wall{}.Now
	begin := now()
	fmt.Fprintf(app.Out, "==> Making environment %q on this machine's own files, with 4 warm runners\n", demoEnvironment)
	playground := execution.Environment{ID: demoEnvironment, Image: "host", PoolSize: 4, MemoryMB: 64, MemoryMaxMB: 256}
	if _, _, err := c.PutEnvironment(ctx, playground); err != nil {
		return err
	}
	if err := env.AwaitWarm(ctx, c, demoEnvironment, 4); err != nil {
		return err
	}
	fmt.Fprintf(app.Out, "    warm after %v\n", term.Round(now().Sub(begin)))

	begin = now()
	runner, err := c.Claim(ctx, execution.ClaimRequest{Environment: demoEnvironment, Wait: 10 * time.Second, IdleTimeout: env.AbandonedAfter})
	if err != nil {
		return err
	}
	claimed := now().Sub(begin)
	defer func() { _ = c.Release(context.WithoutCancel(ctx), runner.ID) }() // the runner has an end of its own too

	name, text, argv := "hello.py", demoPython, []string{"python3", "hello.py"}
	if _, err := os.Stat("/usr/bin/python3"); err != nil {
		name, text, argv = "hello.sh", demoShell, []string{"sh", "hello.sh"}
	}
	begin = now()
	if err := c.ChangeFiles(ctx, runner.ID, execution.FileChange{Path: name, Write: true, Data: []byte(text)}); err != nil {
		return err
	}
	copied := now().Sub(begin)

	begin = now()
	s, err := c.Execute(ctx, runner.ID, execution.Request{Spec: execution.Spec{Argv: argv}, Input: []byte("drover\n")})
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	out, first, receipt, err := readAll(ctx, s)
	if err != nil {
		return err
	}
	ended := now().Sub(begin)
	fmt.Fprintf(app.Out, "==> Ran %s in runner %s\n", strings.Join(argv, " "), runner.ID)
	show(app.Out, "stdout", string(out[execution.Stdout]))
	show(app.Out, "stderr", string(out[execution.Stderr]))
	fmt.Fprintf(app.Out, "    exit    %d (%s), %v of CPU, %.1f MB at most\n", receipt.ExitCode, receipt.Cause,
		term.Round(receipt.UserCPU+receipt.SystemCPU), float64(receipt.PeakMemory)/1e6)
	fmt.Fprintf(app.Out, "    times   claim %v, file copied %v, first byte %v, exit %v\n", term.Round(claimed), term.Round(copied),
		term.Round(first.Sub(begin)), term.Round(ended))
	return nil
}

// demoClient returns the client of the agent's native API. Errors: wrong certificates.
func demoClient(t api.Target) (*client.Client, error) {
	options := []client.Option{client.WithToken(t.Token)}
	if t.CACert != "" {
		h, err := t.HTTPClient()
		if err != nil {
			return nil, err
		}
		options = append(options, client.WithHTTPClient(h))
	}
	return client.New(t.Address, options...)
}

// readAll reads an execution to its end: its output by stream, when the first byte of it came, and the receipt.
func readAll(ctx context.Context, s execution.Session) (out [3][]byte, first time.Time, receipt *execution.Receipt, err error) {
	for {
		f, err := s.Next(ctx)
		switch {
		case errors.Is(err, io.EOF) && receipt == nil:
			return out, first, nil, drover.Errorf(drover.Internal, "the execution ended without a receipt")
		case errors.Is(err, io.EOF):
			return out, first, receipt, nil
		case err != nil:
			return out, first, receipt, err
		}
		if f.Data != nil && first.IsZero() {
			first = clock.Wall{}.Now()
		}
		out[f.Stream] = append(out[f.Stream], f.Data...)
		if f.Receipt != nil {
			receipt = f.Receipt
		}
	}
}

// show prints a program's output, each line behind the name of its stream.
func show(w io.Writer, stream, text string) {
	for line := range strings.Lines(text) {
		fmt.Fprintf(w, "    %s  %s\n", stream, strings.TrimRight(line, "\n"))
	}
}
