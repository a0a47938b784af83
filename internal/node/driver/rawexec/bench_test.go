package rawexec_test

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/rawexec"
	"github.com/drover-project/drover/internal/node/supervisor"
)

// BenchmarkTask is one of eight at once: start, exit, destroy of a task that runs /bin/true.
func BenchmarkTask(b *testing.B) {
	dir := b.TempDir()
	binary, err := supervisor.Binary(dir)
	require.NoError(b, err)
	d := rawexec.New(
		rawexec.Config{
			Enabled: true,
			Binary:  binary,
			Clock:   clock.Wall{},
			Log:     slog.New(slog.DiscardHandler),
			IdleDir: filepath.Join(dir, "idle"),
		},
	)
	defer d.Close()
	var n atomic.Int64
	one := func() error {
		id := fmt.Sprint(n.Add(1))
		h, err := d.Start(b.Context(), driver.Spec{
			AllocID: id, TaskName: "t", ID: id + "/t/0", Config: map[string]any{"command": "/bin/true"},
			Dirs: driver.Dirs{Task: dir, State: filepath.Join(dir, "state", id)}, Log: driver.LogConfig{Disabled: true},
		})
		if err != nil {
			return err
		}
		if _, err := h.Wait(b.Context()); err != nil {
			return err
		}
		return h.Destroy(b.Context())
	}
	var wg sync.WaitGroup
	work := make(chan struct{})
	for range 8 {
		wg.Go(func() { // ends when work is closed
			for range work {
				if err := one(); err != nil {
					b.Error(err)
				}
			}
		})
	}
	for b.Loop() {
		work <- struct{}{}
	}
	close(work)
	wg.Wait()
}
