package telemetry

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
)

// TestAStepIsNoLongerThanTheTime: a step near the end of what a duration holds made the latencies' steps go backward, for ever.
func TestAStepIsNoLongerThanTheTime(t *testing.T) {
	t.Parallel()
	h := NewHistory(clock.Wall{})
	h.Sample([]execution.PoolStatus{{Environment: "py", Namespace: "team", Size: 1}})
	for _, step := range []time.Duration{2562047*time.Hour + 47*time.Minute + 10*time.Second, time.Hour + HistoryStep} {
		_, err := h.Read(time.Hour, step, everything)
		require.Equal(t, drover.Invalid, drover.CodeOf(err), "%v", step)
		require.ErrorContains(t, err, "step")
	}
	_, err := h.Read(time.Hour, time.Hour, everything)
	require.NoError(t, err)
}
