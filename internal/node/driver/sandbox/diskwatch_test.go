package sandbox

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/drivertest"
)

// TestTheAllocationsDiskIsBounded: what a task writes to the machine's disk, in whatever way.
func TestTheAllocationsDiskIsBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for name, c := range map[string]struct{ script, says string }{
		"many files":     {"i=0; while :; do head -c 1000000 /dev/zero > /alloc/f$i; i=$((i+1)); sleep 0.02; done", "more than 10 MB"},
		"in two folders": {"for d in /local /alloc; do head -c 6000000 /dev/zero > $d/f; done; sleep 300", "more than 10 MB"},
		"many inodes":    {"cd /local; i=0; while :; do : > $i; i=$((i+1)); done", "more than 16384 files"},
		"deleted files": {"i=3; while [ $i -lt 9 ]; do " +
			"f=/local/f$i; eval \"exec $i>$f\"; rm $f; head -c 3000000 /dev/zero >&$i; i=$((i+1)); done; " +
			"sleep 300", "more than 10 MB"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := b.spec(t, map[string]any{"command": "/bin/sh", "args": []any{"-c", c.script}})
			spec.DiskMB = 10
			exit := ends(t, b.run(t, spec))
			require.Equal(t, 9, exit.Signal)
			require.ErrorContains(t, exit.Err, c.says)
		})
	}
	t.Run("one file", func(t *testing.T) {
		t.Parallel()
		spec := b.spec(t, map[string]any{"command": "/bin/sh", "args": []any{"-c", "exec head -c 30000000 /dev/zero > /local/f"}})
		spec.DiskMB = 10
		exit := ends(t, b.run(t, spec))
		require.Equal(t, 25, exit.Signal, "the file's size ends it: %+v", exit)
	})
	t.Run("within the limit, after an agent restart too", func(t *testing.T) {
		t.Parallel()
		spec := b.spec(
			t,
			map[string]any{
				"command": "/bin/sh",
				"args": []any{
					"-c",
					"head -c 5000000 /dev/zero > /local/f; read x < /dev/null; until [ -e /local/go ]; do sleep 0.05; done; " +
						"cp /local/f /local/g; cp /local/f /local/h; sleep 300",
				},
			},
		)
		spec.DiskMB = 12
		first := b.run(t, spec)
		first.disk.end()
		require.NoError(t, first.Last().Close())
		d := New(b.cfg)
		h, err := d.Attach(t.Context(), first.State())
		require.NoError(t, err)
		require.Zero(t, drivertest.Root(t, h.(*handle), "touch /local/go").Receipt.ExitCode)
		require.ErrorContains(t, ends(t, h).Err, "more than 12 MB")
		require.NoError(t, h.Destroy(t.Context()))
	})
}

func ends(t *testing.T, h driver.Handle) driver.Exit {
	t.Helper()
	done := make(chan driver.Exit, 1)
	go func() { // ends with the task
		exit, err := h.Wait(t.Context())
		if err != nil {
			t.Error(err)
		}
		done <- exit
	}()
	select {
	case exit := <-done:
		return exit
	case <-time.After(60 * time.Second):
		require.Fail(t, "it was not ended")
		return driver.Exit{}
	}
}
