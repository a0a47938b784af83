package telemetry

import (
	"strconv"
	"strings"
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

// TestWhatIsMissingIsCountedForWhoMaySeeIt: the count told of the environments of all namespaces.
func TestWhatIsMissingIsCountedForWhoMaySeeIt(t *testing.T) {
	t.Parallel()
	h := NewHistory(clock.Wall{})
	var pools []execution.PoolStatus
	for i := range mostEnvironments {
		pools = append(pools, execution.PoolStatus{Environment: "py" + strconv.Itoa(i), Namespace: "first"})
	}
	for _, namespace := range []string{"second", "third"} {
		pools = append(pools, execution.PoolStatus{Environment: "py", Namespace: namespace})
	}
	h.Sample(pools)
	for namespace, missing := range map[string]int{"first": 2, "second": 0, "": 2} {
		got, err := h.Read(time.Hour, 0, func(key string) bool { return strings.HasPrefix(key, namespace) })
		require.NoError(t, err)
		require.Equal(t, missing, got.Missing, namespace)
	}
}
