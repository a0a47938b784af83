package simulator

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A task may run for longer than the days that a run waits for what is late.
func TestWorkThatRunsForDaysIsWaitedFor(t *testing.T) {
	t.Parallel()
	work := Workload{{Run: 100 * time.Hour, Each: size("", 1, 0).Capacity, Priority: 50}}
	res, err := Run(Config{Seed: 1, Policy: threeC5(), Cloud: StandardCloud(), Work: work})
	require.NoError(t, err)
	require.Greater(t, res.Until, 100*time.Hour)
}
