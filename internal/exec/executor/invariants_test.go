package executor

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
)

func TestReceiptsAreChecked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		receipt execution.Receipt
		breaks  string // "" = nothing
	}{
		"exit 0":                      {execution.Receipt{Cause: execution.CauseExited, StdoutBytes: 5}, ""},
		"exit 1":                      {execution.Receipt{Cause: execution.CauseExited, ExitCode: 1, StdoutBytes: 5}, ""},
		"killed":                      {execution.Receipt{Cause: execution.CauseKilled, ExitCode: 137}, ""},
		"not everything, and says so": {execution.Receipt{Cause: execution.CauseExited, StdoutBytes: 6, Truncated: true}, ""},
		"not everything": {execution.Receipt{
			Cause: execution.CauseExited, StdoutBytes: 6,
		}, "invariant 5 (output before exit): x: 5 and 0 bytes"},
		"nothing of stderr":       {execution.Receipt{Cause: execution.CauseExited, StdoutBytes: 5, StderrBytes: 1}, "invariant 5"},
		"killed as exit 0":        {execution.Receipt{Cause: execution.CauseKilled}, "invariant 7 (failure is no success): x"},
		"out of memory as exit 0": {execution.Receipt{Cause: execution.CauseOOM, Truncated: true}, "invariant 7"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := &Execution{id: "x"}
			x.journal.Add(execution.Stdout, 0, []byte("hello"))
			defer func() {
				broke, _ := recover().(string)
				require.Contains(t, broke, c.breaks)
				require.Equal(t, c.breaks == "", broke == "")
			}()
			x.checkReceipt(&c.receipt)
		})
	}
}

func TestAnExecutionThatOutlivesItsRunnerIsReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reports := &reporting{Clock: clock.Wall{}, reported: make(chan any, 1)}
		x := &Execution{id: "x", clock: reports, runner: execution.Runner{ID: "r"}}
		x.mustEnd()
		x.mustEnd() // told twice, reported once
		time.Sleep(outlives + time.Second)
		require.Equal(t, "invariant 6 (nothing outlives): x: its runner r is gone for 5m0s, and it has not ended", <-reports.reported)

		x = &Execution{id: "y", clock: reports, receipt: &execution.Receipt{}}
		x.mustEnd()
		require.Nil(t, x.overdue, "it has ended")
	})
}

// reporting is a clock that catches what its timers panic with.
type reporting struct {
	clock.Clock
	reported chan any
}

func (r *reporting) AfterFunc(d time.Duration, f func()) clock.Timer {
	return r.Clock.AfterFunc(d, func() {
		defer func() { r.reported <- recover() }()
		f()
	})
}
