package simulator

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/fleet/scaler"
)

// Arvados' and Cluster Autoscaler's rules, and a pool of fixed size, on the same bursty afternoon. Idle and create
// rules only: their queues, probes and error handling are not imitated.
func TestBaselines(t *testing.T) {
	t.Parallel()
	work := Bursty(3, 4*time.Hour, Mixed(5*time.Minute), 2000)
	run := func(decide func(scaler.Input) scaler.Output) Result {
		res, err := Run(Config{Seed: 3, Policy: StandardPolicy(), Cloud: StandardCloud(), Work: work, Decide: decide})
		require.NoError(t, err)
		return res
	}
	ours := run(nil)
	t.Log("ours    ", ours)
	arvados := run(Arvados().Decide)
	t.Log("arvados ", arvados)
	autoscaler := run(ClusterAutoscaler().Decide)
	t.Log("ca      ", autoscaler)
	require.Less(t, ours.Wait(0.95), arvados.Wait(0.95))
	require.Less(t, ours.Cost, autoscaler.Cost)
	fixed := run((&Baseline{Fixed: ours.Peak}).Decide)
	t.Log("fixed   ", fixed)
	require.Less(t, ours.Cost, fixed.Cost)
}
