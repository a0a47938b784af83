package bench

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/term"
	"github.com/drover-project/drover/internal/clock"
)

func execute(t *testing.T, command int, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	app := &term.App{Out: &out, Err: io.Discard, Clock: clock.Wall{}}
	fill := func(_ context.Context, dir string, nodes, allocs int) (filled, snapshot time.Duration, err error) {
		if dir == "bad" || nodes != 3 || allocs != 4 {
			return 0, 0, drover.Errorf(drover.Invalid, "no such folder")
		}
		return time.Second, 2 * time.Second, nil
	}
	c := Commands(fill)(app)[command]
	c.SetArgs(args)
	c.SilenceErrors, c.SilenceUsage = true, true
	err := c.ExecuteContext(t.Context())
	return out.String(), err
}

func TestFiguresMeasuredElsewhereArePrinted(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "figures")
	require.NoError(t, os.WriteFile(file, []byte(`{"figure":"claim p50","value":0.25,"unit":"ms","goal":"≤ 0.3"}`+"\n"), 0o600))
	out, err := execute(t, 0, "--only", "nothing", "--with", file)
	require.NoError(t, err)
	require.Contains(t, out, `{"figure":"claim p50","value":0.25,"unit":"ms","goal":"≤ 0.3"}`)
	require.Regexp(t, `(?m)^claim p50 +0\.25 ms +≤ 0\.3`, out)
	out, err = execute(t, 0, "--only", "nothing", "--with", file, "--markdown")
	require.NoError(t, err)
	require.Contains(t, out, "\n| figure | measured | goal | peer |\n|---|---|---|---|\n| claim p50 | 0.25 ms | ≤ 0.3 |  |\n")
	_, err = execute(t, 0, "--only", "(")
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
	_, err = execute(t, 0, "--only", "nothing", "--with", file+"x")
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
}

func TestFillTellsItsTimesAndItsMemory(t *testing.T) {
	t.Parallel()
	out, err := execute(t, 1, "--nodes", "3", "--allocs", "4", "folder")
	require.NoError(t, err)
	require.Regexp(t, `^1\.000 2\.000 \d+\n$`, out)
	_, err = execute(t, 1, "bad")
	require.ErrorContains(t, err, "no such folder")
}

func TestPercentiles(t *testing.T) {
	t.Parallel()
	list := []time.Duration{3 * time.Millisecond, time.Millisecond, 2 * time.Millisecond}
	require.InDelta(t, 2, percentile(list, 0.5), 0)
	require.InDelta(t, 3, percentile(list, 1), 0)
	require.Zero(t, percentile(nil, 0.5))
	require.Equal(t, 3*time.Millisecond, list[0], "the list is left as it was")
}
