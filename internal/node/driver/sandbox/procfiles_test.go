package sandbox

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/node/driver/drivertest"
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
			require.Empty(t, drivertest.Root(t, h, "cat "+name).Out, name)
		}
	}
	require.Empty(t, drivertest.Root(t, h, "ls /proc/pressure").Out)
	require.Equal(t, "0.00 0.00 0.00 1/1 1\n", drivertest.Sh(t, h, "cat /proc/loadavg").Out)
	machines, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	require.NoError(t, err)
	require.NotContains(t, drivertest.Sh(t, h, "cat /proc/sys/kernel/random/boot_id").Out, strings.TrimSpace(string(machines)))
	require.Regexp(t, `^MemTotal: +196608 kB`, drivertest.Sh(t, h, "cat /proc/meminfo").Out)
	require.Regexp(t, `Mem: +192 +0 +192`, drivertest.Sh(t, h, "free -m").Out, "programs see what they may take")
	require.Equal(
		t,
		strings.TrimSpace(drivertest.Sh(t, h, "nproc").Out),
		drivertest.Sh(t, h, "grep -c ^cpu[0-9] /proc/stat | tr -d '\\n'").Out,
	)
	require.Zero(t, drivertest.Sh(t, h, "ps -ef && uptime && top -bn1 >/dev/null || ! command -v top").Receipt.ExitCode)
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
	require.NotContains(
		t,
		drivertest.Root(t, h, "cat /proc/self/mountinfo /proc/1/mountinfo /proc/1/maps; ls -l /proc/1/ /proc/1/exe").Out,
		b.dir,
	)
}
