package stats

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/usage"
)

func TestHostOfThisMachine(t *testing.T) {
	t.Parallel()
	s, err := New(clock.Wall{}).Host(t.TempDir())
	require.NoError(t, err)
	require.Positive(t, s.Memory.Total)
	require.NotEmpty(t, s.CPU)
	require.Positive(t, s.AllocDirStats.Size)
	require.Positive(t, s.Uptime)
}

// setBack is a clock that can be set back.
type setBack struct {
	clock.Wall
	by time.Duration
}

func (c *setBack) Now() time.Time { return c.Wall.Now().Add(-c.by).Round(0) }

func TestHostAfterTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	c := &setBack{}
	h := New(c)
	before, err := h.Host(t.TempDir())
	require.NoError(t, err)
	c.by = time.Hour
	after, err := h.Host(t.TempDir())
	require.NoError(t, err)
	require.NotSame(t, before, after, "for an hour the same figures were given")
}

func TestHostMeasuresBetweenSamples(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		put := func(name, text string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		}
		h := New(clock.Wall{})
		h.proc, h.mhz = dir, 2000
		_, err := h.Host(dir)
		require.Equal(t, drover.NotImplemented, drover.CodeOf(err))
		put("stat", "cpu  1 1 1 1\ncpu0 100 0 100 800 0 0 0 0 7 7\ncpu1 0 0 0 0\nintr 1\n")
		put("meminfo", "MemTotal: 100 kB\nMemFree: 20 kB\nMemAvailable: 40 kB\n")
		put("uptime", "12.5 3.0\n")
		put("mounts", "proc /proc proc rw 0 0\n/dev/none /no\\040where ext4 rw 0 0\n")
		one, err := h.Host(dir)
		require.NoError(t, err)
		require.Equal(t, usage.HostMemoryStats{Total: 102400, Available: 40960, Used: 61440, Free: 20480}, *one.Memory)
		require.Equal(t, uint64(12), one.Uptime)
		require.Equal(t, 100.0, one.CPU[1].Idle) // not NaN
		time.Sleep(time.Second / 2)
		again, err := h.Host(dir)
		require.NoError(t, err)
		require.Same(t, one, again)
		put("stat", "cpu0 150 0 125 825 0 0 0 0\ncpu1 0 0 0 10\n")
		time.Sleep(time.Second)
		two, err := h.Host(dir)
		require.NoError(t, err)
		require.Equal(t, usage.HostCPUStats{CPU: "cpu0", User: 50, System: 25, Idle: 25, TotalPercent: 75, TotalTicks: 1500}, *two.CPU[0])
		require.Equal(t, 1500.0, two.CPUTicksConsumed)
		require.Greater(t, two.Timestamp, one.Timestamp)
	})
}

func TestUnescape(t *testing.T) {
	t.Parallel()
	require.Equal(t, []mount{{"/dev/a", "/x y"}}, readMounts([]byte("/dev/a /x\\040y ext4\n/dev/a /again ext4\nnone /z tmpfs\n")))
}
