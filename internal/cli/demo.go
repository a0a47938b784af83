package cli

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
	"github.com/drover-project/drover/internal/clock"
)

const demoEnvironment = "playground"

const demoPython = `import os, platform, sys
name = sys.stdin.readline().strip()
print(f"Hello {name}, this is Python {platform.python_version()} in a sandbox.")
print("I am process", os.getpid(), "and user", os.getuid(), "on host", platform.node())
print("and I can see", len([p for p in os.listdir("/proc") if p.isdigit()]), "processes.", file=sys.stderr)
`

const demoShell = `read name
echo "Hello $name, this is a shell in a sandbox."
echo "I am process $$ and user $(id -u) on host $(uname -n)"
echo "and I can see $(ls -d /proc/[0-9]* | wc -l) processes." >&2
`

// demo makes an environment, runs a program in one of its warm runners, shows what came of it and what is served.
func (a *App) demo(ctx context.Context, t target) {
	if err := a.runDemo(ctx, t); err != nil && ctx.Err() == nil {
		fmt.Fprintln(a.Err, "Error: the demonstration:", err)
	}
	fmt.Fprintf(a.Out, `
==> Serving on %[1]s until you press Ctrl-C:
    %[1]s/v1/jobs, /v1/allocations, …        jobs, with Nomad's API (NOMAD_ADDR=%[1]s nomad status)
    %[1]s/api/v1/runners, …                  executions, with Poseidon's API (CodeOcean)
    %[1]s/v1/environments, /v1/runners, …    executions, with Drover's own API (Go package github.com/drover-project/drover/client)
    %[1]s/v1/event/stream, /v1/metrics       what happens, and how much of it
    try:  curl -s %[1]s/v1/run -d '{"environment":"%[2]s","command":"echo hello; id"}'
`, t.address, demoEnvironment)
}

func (a *App) runDemo(ctx context.Context, t target) error {
	options := []client.Option{client.WithToken(t.token)}
	if t.caCert != "" {
		h, err := t.http()
		if err != nil {
			return err
		}
		options = append(options, client.WithHTTPClient(h))
	}
	c, err := client.New(t.address, options...)
	if err != nil {
		return err
	}
	now := clock.Wall{}.Now
	begin := now()
	fmt.Fprintf(a.Out, "==> Making environment %q on this machine's own files, with 4 warm runners\n", demoEnvironment)
	if _, _, err := c.PutEnvironment(ctx, execution.Environment{ID: demoEnvironment, Image: "host", PoolSize: 4, MemoryMB: 64, MemoryMaxMB: 256}); err != nil {
		return err
	}
	if err := warm(ctx, c, demoEnvironment, 4); err != nil {
		return err
	}
	fmt.Fprintf(a.Out, "    warm after %v\n", round(now().Sub(begin)))

	begin = now()
	runner, err := c.Claim(ctx, execution.ClaimRequest{Environment: demoEnvironment, Wait: 10 * time.Second, IdleTimeout: abandoned})
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
	var out [3]strings.Builder
	var first time.Duration
	var receipt *execution.Receipt
	for {
		f, err := s.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if f.Data != nil && first == 0 {
			first = now().Sub(begin)
		}
		out[f.Stream].Write(f.Data)
		if f.Receipt != nil {
			receipt = f.Receipt
		}
	}
	ended := now().Sub(begin)
	fmt.Fprintf(a.Out, "==> Ran %s in runner %s\n", strings.Join(argv, " "), runner.ID)
	show(a.Out, "stdout", out[execution.Stdout].String())
	show(a.Out, "stderr", out[execution.Stderr].String())
	if receipt == nil {
		return drover.Errorf(drover.Internal, "the execution ended without a receipt")
	}
	fmt.Fprintf(a.Out, "    exit    %d (%s), %v of CPU, %.1f MB at most\n", receipt.ExitCode, receipt.Cause, round(receipt.UserCPU+receipt.SystemCPU), float64(receipt.PeakMemory)/1e6)
	fmt.Fprintf(a.Out, "    times   claim %v, file copied %v, first byte %v, exit %v\n", round(claimed), round(copied), round(first), round(ended))
	return nil
}

// warm waits until n runners of the environment are ready.
func warm(ctx context.Context, c *client.Client, environment string, n int) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	now := clock.Wall{}.Now
	hopeful := now() // when something still went right
	for {
		pool, err := c.Pool(ctx, environment)
		if err != nil {
			return err
		}
		if pool.Warm >= n {
			return nil
		}
		if pool.LastError == "" || pool.Warm+pool.Starting > 0 {
			hopeful = now()
		}
		if now().Sub(hopeful) > 10*time.Second {
			return drover.Errorf(drover.Unavailable, "the pool of %s does not fill: %s", environment, pool.LastError)
		}
		if !clock.Sleep(ctx, clock.Wall{}, 5*time.Millisecond) {
			return drover.Errorf(drover.Unavailable, "the pool of %s did not fill within a minute: %d of %d warm; %s", environment, pool.Warm, n, pool.LastError)
		}
	}
}

func show(w io.Writer, stream, text string) {
	for line := range strings.Lines(text) {
		fmt.Fprintf(w, "    %s  %s\n", stream, strings.TrimRight(line, "\n"))
	}
}

// round keeps three digits or so.
func round(d time.Duration) time.Duration {
	switch {
	case d < time.Millisecond:
		return d.Round(time.Microsecond)
	case d < time.Second:
		return d.Round(10 * time.Microsecond)
	}
	return d.Round(time.Millisecond)
}
