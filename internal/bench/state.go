package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/term"
)

// FillFunc fills a data folder with a large state; it returns how long that and its snapshot took.
type FillFunc func(ctx context.Context, dataDir string, nodes, allocs int) (filled, snapshot time.Duration, err error)

// fillCommand fills a data folder, in a process of its own so that its memory can be measured.
func fillCommand(app *term.App, fill FillFunc) *cobra.Command {
	var nodes, allocs int
	c := &cobra.Command{
		Use: "bench-fill FOLDER", Short: "Fill a data folder with a large state, for the bench", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			filled, snapshot, err := fill(cmd.Context(), args[0], nodes, allocs)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(app.Out, "%.3f %.3f %.0f\n", filled.Seconds(), snapshot.Seconds(), memoryMB(os.Getpid(), "VmHWM"))
			return err
		},
	}
	c.Flags().IntVar(&nodes, "nodes", 10_000, "nodes")
	c.Flags().IntVar(&allocs, "allocs", 1_000_000, "allocations")
	return c
}

// state measures a server with 10,000 nodes and 1 M running allocations: its memory, its snapshot, its restart.
func (b *bench) state(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "drover-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	allocs := 1_000_000
	if b.quick {
		allocs /= 10
	}
	// The state is filled by another process, whose peak memory is not ours.
	fill := exec.CommandContext(ctx, self, "bench-fill", "-allocs", strconv.Itoa(allocs), dir)
	fill.Stderr = b.app.Err
	out, err := fill.Output()
	if err != nil {
		return fmt.Errorf("filling %s: %w", dir, err)
	}
	var filled, snapshot, peak float64
	if _, err := fmt.Sscan(string(out), &filled, &snapshot, &peak); err != nil {
		return fmt.Errorf("filling %s: %w", dir, err)
	}
	name := fmt.Sprintf("10,000 nodes, %d allocations: ", allocs)
	b.report(name+"applied by the log", float64(allocs)/filled, "allocations a second", "", "")
	b.report(name+"snapshot written", snapshot, "s", "", "")
	b.report(name+"size of the snapshot", folderMB(filepath.Join(dir, "server/raft/snapshots")), "MB", "", "")
	b.report(name+"peak memory while filled and written", peak, "MB", "≤ 4,295", "")
	return b.restart(ctx, self, dir, name)
}

// restart measures the real server over the folder.
func (b *bench) restart(ctx context.Context, self, dir, name string) error {
	config := filepath.Join(dir, "bench.hcl")
	if err := os.WriteFile(config,
		[]byte("server {\n  enabled = true\n}\nclient {\n  enabled = false\n}\nports {\n  http = 0\n  rpc = 0\n}\n"), 0o600); err != nil {
		return err
	}
	read, write := io.Pipe()
	agentCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	agent := exec.CommandContext(agentCtx, self, "agent", "-config", config, "-data-dir", dir, "-http-port", "0", "-log-level", "error")
	agent.Stdout, agent.Stderr = write, b.app.Err
	agent.Cancel = func() error { return agent.Process.Signal(syscall.SIGTERM) }
	agent.WaitDelay = 30 * time.Second
	// The measured time contains the start of the process, the load of the snapshot and the wait for leadership.
	begin := b.now()
	if err := agent.Start(); err != nil {
		return err
	}
	defer func() { cancel(); _ = write.Close(); _ = agent.Wait() }()
	var addr string
	if _, err := fmt.Fscanf(read, "==> Drover agent is serving on %s", &addr); err != nil {
		return fmt.Errorf("waiting for the agent: %w", err)
	}
	b.report(name+"restart of the server until it serves", b.now().Sub(begin).Seconds(), "s", "≤ 20", "")
	go func() { _, _ = io.Copy(io.Discard, read) }() // ends when the pipe is closed
	b.report(name+"peak memory of the restarted server", memoryMB(agent.Process.Pid, "VmHWM"), "MB", "≤ 4,295", "")
	return nil
}

// memoryMB reads a line of the process's status, in MB.
func memoryMB(pid int, key string) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) >= 2 && f[0] == key+":" {
			// The kernel says kB and means 1,024 bytes.
			kb, _ := strconv.ParseFloat(f[1], 64)
			return kb * 1024 / 1e6
		}
	}
	return 0
}

// folderMB is the size of all regular files below the folder, in MB of a million bytes. What cannot be read counts as
// 0.
func folderMB(dir string) (mb float64) {
	_ = filepath.WalkDir(dir, func(_ string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil && info.Mode().IsRegular() {
			mb += float64(info.Size()) / 1e6
		}
		return err
	})
	return mb
}
