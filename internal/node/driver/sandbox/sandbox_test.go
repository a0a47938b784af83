package sandbox

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/node/driver/drivertest"
)

func TestWarmRunner(t *testing.T) {
	t.Parallel()
	h := newBench(t).warm(t, nil)
	r := drivertest.Sh(t, h, "id -u; pwd; hostname; echo $HOME $NOMAD_TASK_DIR $GREETING; echo oops >&2; exit 3")
	require.Equal(t, "oops\n", r.Err)
	require.Equal(t, 3, r.Receipt.ExitCode)
	require.Equal(t, execution.CauseExited, r.Receipt.Cause)
	require.Equal(t, "1000\n/home/user\nt-"+h.ident.AllocID[:8]+"\n/home/user /local hello from /local\n", r.Out)
	require.Equal(t, "0\n", drivertest.Root(t, h, "id -u").Out)
}

func TestARehearsalLeavesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	spec := b.spec(t, nil)
	spec.Pool, spec.Rehearse = true, true
	h := b.run(t, spec)
	list, err := h.Executions(t.Context())
	require.NoError(t, err)
	require.Empty(t, list)
	require.Equal(t, "hi\n", drivertest.Sh(t, h, "echo hi").Out)

	client, err := h.Client(t.Context())
	require.NoError(t, err)
	r := b.rehearse(t.Context(), client)
	require.Equal(t, execution.CauseStartFailed, r.Cause)
	require.Equal(t, "not a directory: /dev/null", r.Error, "which its child found out")
}

func TestTask(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	spec := b.spec(t, map[string]any{"command": "/bin/sh", "args": []any{"-c", "echo $NOMAD_TASK_DIR; echo x > /local/made; exit 7"}})
	h := b.run(t, spec)
	exit, err := h.Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, 7, exit.Code)
	require.NoError(t, exit.Err)
	data, err := os.ReadFile(filepath.Join(spec.Dirs.Local, "made"))
	require.NoError(t, err)
	require.Equal(t, "x\n", string(data))
	log, err := os.ReadFile(filepath.Join(spec.Log.Dir, "t.stdout.0"))
	require.NoError(t, err)
	require.Equal(t, "/local\n", string(log))
	require.NoError(t, h.Destroy(t.Context()))
	require.NoError(t, h.Destroy(t.Context()), "idempotent")
}
