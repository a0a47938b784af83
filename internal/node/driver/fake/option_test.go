package fake_test

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/fake"
)

func start(t *testing.T, config map[string]any, dir string) (driver.Handle, error) {
	t.Helper()
	d := fake.New(fake.Config{Clock: clock.Wall{}})
	require.NoError(t, d.Validate(&drover.Task{Config: config}))
	return d.Start(t.Context(), driver.Spec{ID: "a/t/1", TaskName: "t", Config: config, Log: driver.LogConfig{Dir: dir}})
}

func TestOptions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config map[string]any
		after  time.Duration
		want   driver.Exit
	}{
		"runs and exits": {map[string]any{"run_for": "5s", "exit_code": 3}, 5 * time.Second, driver.Exit{Code: 3}},
		"exits at once":  {map[string]any{}, 0, driver.Exit{}},
		"signalled":      {map[string]any{"run_for": "1s", "exit_signal": 9}, time.Second, driver.Exit{Code: 137, Signal: 9}},
		"out of memory": {
			map[string]any{"run_for": "1s", "exit_code": 137, "oom_killed": true}, time.Second, driver.Exit{Code: 137, OOMKilled: true},
		},
		"starts late":     {map[string]any{"start_block_for": "2s", "run_for": "1s"}, 3 * time.Second, driver.Exit{}},
		"has no effect":   {map[string]any{"plugin_exit_after": "1s", "driver_ip": "1.2.3.4", "run_for": "1s"}, time.Second, driver.Exit{}},
		"json's numbers":  {map[string]any{"run_for": float64(time.Second), "exit_code": float64(4)}, time.Second, driver.Exit{Code: 4}},
		"texts of an HCL": {map[string]any{"run_for": "1s", "exit_code": "4"}, time.Second, driver.Exit{Code: 4}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				h, err := start(t, c.config, "")
				require.NoError(t, err)
				exit, err := h.Wait(t.Context())
				require.NoError(t, err)
				require.Equal(t, c.want, exit)
				require.Equal(t, c.after, time.Since(begin))
			})
		})
	}
}

func TestStartError(t *testing.T) {
	t.Parallel()
	for _, recoverable := range []bool{false, true} {
		_, err := start(t, map[string]any{"start_error": "no luck", "start_error_recoverable": recoverable}, "")
		var s *driver.StartError
		require.ErrorAs(t, err, &s)
		require.Equal(t, recoverable, s.Recoverable)
		require.Equal(t, "no luck", s.Error())
	}
}

func TestKillAfterAndSignalError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, err := start(t, map[string]any{"run_for": "1h", "kill_after": "3s", "signal_error": "deaf"}, "")
		require.NoError(t, err)
		require.ErrorContains(t, h.Signal(t.Context(), "SIGHUP"), "deaf")
		begin := time.Now()
		require.NoError(t, h.Stop(t.Context(), "", 10*time.Second))
		require.Equal(t, 3*time.Second, time.Since(begin))
		exit, err := h.Wait(t.Context())
		require.NoError(t, err)
		require.Equal(t, 15, exit.Signal)
	})
}

func TestOutputIsRepeatedPerStream(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		h, err := start(t, map[string]any{
			"run_for": "10s", "stdout_string": "o", "stdout_repeat": 3, "stdout_repeat_duration": "1s", "stderr_string": "e", "stderr_repeat": 1,
		}, dir)
		require.NoError(t, err)
		read := func(stream string) string {
			b, err := os.ReadFile(filepath.Join(dir, "t."+stream+".0"))
			require.NoError(t, err)
			return string(b)
		}
		time.Sleep(1500 * time.Millisecond)
		require.Equal(t, "oo", read("stdout"))
		require.Equal(t, "ee", read("stderr"))
		_, err = h.Wait(t.Context())
		require.NoError(t, err)
		require.Equal(t, "oooo", read("stdout"))
		require.Equal(t, "ee", read("stderr"))
	})
}
