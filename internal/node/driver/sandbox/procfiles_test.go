package sandbox

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/execution"
)

// TestProcTellsOfTheSandbox: W8 of the review of 2026-11-22. Guests read how busy the machine is, and which.
func TestProcTellsOfTheSandbox(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	spec := b.spec(t, nil)
	spec.Pool, spec.MemoryMB = true, 192
	h := b.run(t, spec)
	for _, name := range maskedFiles {
		if _, err := os.Stat(name); err == nil {
			require.Empty(t, h.root(t, "cat "+name).out, name)
		}
	}
	require.Empty(t, h.root(t, "ls /proc/pressure").out)
	require.Equal(t, "0.00 0.00 0.00 1/1 1\n", h.sh(t, "cat /proc/loadavg").out)
	machines, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	require.NoError(t, err)
	require.NotContains(t, h.sh(t, "cat /proc/sys/kernel/random/boot_id").out, strings.TrimSpace(string(machines)))
	require.Regexp(t, `^MemTotal: +196608 kB`, h.sh(t, "cat /proc/meminfo").out)
	require.Regexp(t, `Mem: +192 +0 +192`, h.sh(t, "free -m").out, "programs see what they may take")
	require.Equal(t, strings.TrimSpace(h.sh(t, "nproc").out), h.sh(t, "grep -c ^cpu[0-9] /proc/stat | tr -d '\\n'").out)
	require.Zero(t, h.sh(t, "ps -ef && uptime && top -bn1 >/dev/null || ! command -v top").receipt.ExitCode)
	refused(t, h, "looking for what others may take", "ls /dev/.proc")
	refused(t, h, "changing what is shown", "echo x > /proc/loadavg || echo x > /dev/.proc/loadavg || rm /dev/.proc/stat")
}

// TestTheAgentsFoldersAreNotShown: what drover-init does for the guest shows the guest drover-init.
func TestTheAgentsFoldersAreNotShown(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	h := b.warm(t, nil)
	_, f, err := h.Files().Read(t.Context(), execution.FileRequest{Path: "/proc/self/maps"})
	require.NoError(t, err)
	text, err := io.ReadAll(f)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.NotContains(t, string(text), b.dir)
	require.Contains(t, string(text), "drover-init")
	require.NotContains(t, h.root(t, "cat /proc/self/mountinfo /proc/1/mountinfo /proc/1/maps; ls -l /proc/1/ /proc/1/exe").out, b.dir)
}
