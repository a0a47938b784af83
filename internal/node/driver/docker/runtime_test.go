package docker

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/node/driver/drivertest"
	"github.com/drover-project/drover/internal/node/driver/supervised"
)

func TestTheRuntimeIsNamed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	require.Equal(t, "named\n", b.logged(t, b.spec(t, script2("echo named", map[string]any{"runtime": "runc"}))))
}

// TestGVisor is all of a task's life under runsc: logs, executions, files, usage, an agent's restart, its end.
func TestGVisor(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	gvisor := map[string]any{"runtime": "runsc"}
	out := b.logged(t, b.spec(t, script2("uname -r; echo $GREETING; cat /proc/1/cmdline >/dev/null || echo no", gvisor)))
	require.True(t, strings.HasPrefix(out, "4.4.0\nhello from /local\n"), out)
	h := b.run(t, b.spec(t, script2("trap 'exit 7' TERM; while :; do sleep 0.1; done", gvisor)))
	require.Equal(t, "1000\n", drivertest.Sh(t, b.warm(t, gvisor), "id -u").Out)
	r := drivertest.Do(t, h, execution.Spec{Argv: []string{"/bin/sh", "-c", "cat; echo err >&2; exit 3"}})
	require.Equal(t, 3, r.Receipt.ExitCode)
	require.Equal(t, "err\n", r.Err)
	big := drivertest.Sh(t, h, "head -c 3000000 /dev/zero")
	require.Len(t, big.Out, 3_000_000)
	r = drivertest.Do(t, h, execution.Spec{Argv: []string{"sleep", "100"}, Limits: drover.Limits{Wall: 300 * time.Millisecond}})
	require.Equal(t, execution.CauseTimeout, r.Receipt.Cause)
	r = drivertest.Do(t, h, execution.Spec{Argv: []string{"nothing-like-this"}})
	require.Equal(t, execution.CauseStartFailed, r.Receipt.Cause)
	files, err := h.Files().List(t.Context(), execution.FileRequest{Path: "/"})
	require.NoError(t, err)
	require.NotEmpty(t, files)
	u, err := h.Usage(t.Context())
	require.NoError(t, err)
	require.NotZero(t, u.ResourceUsage.MemoryStats.Usage)

	again, err := b.restart(t).Attach(t.Context(), drivertest.ThroughJSON(t, h.State()))
	require.NoError(t, err)
	require.Equal(t, "again\n", drivertest.Sh(t, again.(*handle), "echo again").Out)
	require.Equal(t, "both\n", drivertest.Sh(t, h, "echo both").Out)
	require.NoError(t, again.Stop(t.Context(), "", 10*time.Second))
	exit, err := again.Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, 7, exit.Code)
	require.NoError(t, again.(*handle).Last().Close())
}

// TestGVisorSurvivesTheDaemon with live-restore: what runs there runs on, and can be reached when the daemon is back.
func TestGVisorSurvivesTheDaemon(t *testing.T) {
	t.Parallel()
	dockerd := daemon(t, "--live-restore")
	b := newBench(t, func(c *Config) { c.Endpoint = dockerd.Endpoint })
	h := b.run(t, b.spec(t, script2("sleep 600", map[string]any{"runtime": "runsc"})))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ended := make(chan error, 1)
	go func() { // ends with the task
		exit, err := h.Wait(ctx)
		ended <- errors.Join(exit.Err, err)
	}()
	require.NoError(t, dockerd.Restart())
	require.Equal(t, "still here\n", drivertest.Sh(t, h, "echo still here").Out)
	select {
	case err := <-ended:
		require.Fail(t, "the task ended", "%v", err)
	default:
	}
	require.NoError(t, h.Last().Kill())
	require.ErrorIs(t, <-ended, supervised.ErrVanished)
}
