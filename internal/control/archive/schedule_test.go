package archive

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/clock"
)

// An archive is saved when it is due; one that cannot be saved is tried again soon, and costs no older one; a new leader goes by
// what its folder has.
func TestArchivesAreSavedAsScheduled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		folder := filepath.Join(t.TempDir(), "archives")
		a := archives(t, machine(t))
		run := func(s *Schedule, d time.Duration) {
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() { defer close(ended); s.Run(ctx) }() // ends with ctx
			clock.Sleep(ctx, clock.Wall{}, d)
			synctest.Wait()
			cancel()
			<-ended
		}
		count := func() int {
			list, err := os.ReadDir(folder)
			require.NoError(t, err)
			return len(list)
		}
		s := NewSchedule(a, folder, time.Hour, 3)
		run(s, 90*time.Minute)
		require.Equal(t, 2, count(), "at once, and after an hour")
		run(NewSchedule(a, folder, time.Hour, 3), 29*time.Minute)
		require.Equal(t, 2, count(), "the last one is not an hour old")
		run(NewSchedule(a, folder, time.Hour, 3), 5*time.Hour)
		require.Equal(t, 3, count())

		full := NewSchedule(a, filepath.Join(folder, "below", "\x00"), time.Hour, 3)
		run(full, 2*time.Minute+time.Second)
		require.Equal(t, 3, full.fails)
		require.NotEmpty(t, full.Problem())
		gauges := map[string]float64{}
		full.Gauges(func(name string, value float64, _ ...string) { gauges[name] = value })
		require.Equal(t, map[string]float64{"drover.archives.failures": 3}, gauges)
		s.Gauges(func(name string, value float64, _ ...string) { gauges[name] = value })
		require.Positive(t, gauges["drover.archives.age_seconds"])

		names, err := s.files.List()
		require.NoError(t, err)
		file, err := os.Open(filepath.Join(folder, names[0]))
		require.NoError(t, err)
		defer file.Close()
		_, err = Inspect(file)
		require.NoError(t, err)
	})
}
