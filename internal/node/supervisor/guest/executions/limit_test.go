package executions

import (
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/node/supervisor/guest/process"
	"github.com/drover-project/drover/internal/node/supervisor/wire"
)

func TestLimitsThatEndAProgram(t *testing.T) {
	t.Parallel()
	const loop = "while :; do :; done"
	for name, c := range map[string]struct {
		script string
		limits drover.Limits
		cause  execution.Cause
	}{
		"wall":      {"sleep 1000", drover.Limits{Wall: 50 * time.Millisecond}, execution.CauseTimeout},
		"cpu":       {loop, drover.Limits{CPU: 200 * time.Millisecond}, execution.CauseCPULimit},
		"cpu tree":  {"(" + loop + ") & (" + loop + ") & wait", drover.Limits{CPU: 200 * time.Millisecond}, execution.CauseCPULimit},
		"processes": {"for i in 1 2 3 4 5 6; do sleep 1000 & done; wait", drover.Limits{Pids: 4}, execution.CauseKilled},
		"memory": {
			`grow() { x=x; while [ ${#x} -lt 10000000 ]; do x="$x$x"; done; sleep 1000; }; grow & grow & grow & wait`,
			drover.Limits{MemoryMB: 40},
			execution.CauseOOM,
		},
		"a flood": {"yes", drover.Limits{OutputBytes: 1000}, execution.CauseOutputLimit},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGuest(t, wire.Boot{})
			spec := script("e", c.script)
			spec.Limits = c.limits
			if syscall.Geteuid() != 0 && c.limits.Pids > 0 {
				t.Skip("a user's limit counts all of its processes on the machine")
			}
			out, receipt := g.start(t, spec).end(t)
			require.Equal(t, c.cause, receipt.Cause, receipt.Error)
			require.NotZero(t, receipt.ExitCode)
			if c.limits.OutputBytes > 0 {
				require.Len(t, out[0], 1000)
				require.True(t, receipt.Truncated)
				require.Greater(t, receipt.StdoutBytes, int64(floodBytes))
			}
			if c.limits.CPU > 0 {
				require.GreaterOrEqual(t, receipt.UserCPU+receipt.SystemCPU, c.limits.CPU)
			}
		})
	}
}

// TestOutputBeyondTheLimit is thrown away, and the program goes on to its own end.
func TestOutputBeyondTheLimit(t *testing.T) {
	t.Parallel()
	g := newGuest(t, wire.Boot{})
	spec := script("e", "printf 12345678; printf abcdefgh >&2; printf 90; exit 6")
	spec.Limits.OutputBytes = 9
	out, receipt := g.start(t, spec).end(t)
	require.Equal(t, [2]string{"123456789", "abcdefgh"}, out, "each stream has the limit")
	require.True(t, receipt.Truncated)
	require.Equal(t, 6, receipt.ExitCode)
	require.Equal(t, execution.CauseExited, receipt.Cause)
	require.Equal(t, int64(10), receipt.StdoutBytes)
}

func TestLimitsOfEachProcess(t *testing.T) {
	t.Parallel()
	g := newGuest(t, wire.Boot{})
	spec := script("e", "ulimit -n; ulimit -f; ulimit -c")
	spec.Limits = drover.Limits{OpenFiles: 77, FileSizeMB: 2}
	out, _ := g.start(t, spec).end(t)
	fields := strings.Fields(out[0])
	require.Equal(t, "77", fields[0])
	blocks, err := strconv.Atoi(fields[1])
	require.NoError(t, err)
	require.Contains(t, []int{2 << 11, 2 << 10}, blocks, "of 512 or 1,024 bytes, as the shell counts")
	require.Equal(t, "0", fields[2])
}

func TestResourceLimits(t *testing.T) {
	t.Parallel()
	limits := func(l drover.Limits, fds ...int) map[int]uint64 {
		x := &command{spec: execution.Spec{Limits: l}, tree: process.NewTree(fds)}
		all := map[int]uint64{}
		for _, r := range x.rlimits() {
			all[r.Resource] = r.Max
		}
		delete(all, unix.RLIMIT_NOFILE)
		return all
	}
	require.Equal(t, map[int]uint64{unix.RLIMIT_CORE: 0}, limits(drover.Limits{}))
	l := drover.Limits{CPU: 1500 * time.Millisecond, MemoryMB: 3, Pids: 4, FileSizeMB: 5}
	require.Equal(t, map[int]uint64{
		unix.RLIMIT_CORE: 0, unix.RLIMIT_CPU: 4, unix.RLIMIT_DATA: 6 << 20, unix.RLIMIT_NPROC: 4, unix.RLIMIT_FSIZE: 5 << 20,
	}, limits(l))
	require.Equal(t, map[int]uint64{unix.RLIMIT_CORE: 0, unix.RLIMIT_CPU: 4, unix.RLIMIT_FSIZE: 5 << 20}, limits(l, 90),
		"a control group keeps the others")
}
