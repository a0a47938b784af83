package scheduler

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A canary was promoted, and before the old allocation of its name was stopped, the next version came: both stayed,
// and the higher index went instead. Found by TestInvariants.
func TestPromotedCanaryUnderNextVersion(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.addNode("n1", nil)
	register := func(count, cpu, update string) {
		w.putJob(jobOf(t, "roll", map[string]string{"count": count, "cpu": cpu, "update": update}))
		w.eval("roll")
	}
	register("1", "100", "1")
	register("2", "200", "1/1")
	w.deploymentCommand("roll", "promote")
	register("2", "100", "1")
	names := map[string]int{}
	for _, a := range w.live("roll") {
		names[a.Name]++
	}
	require.Equal(t, map[string]int{"roll.g[0]": 1, "roll.g[1]": 1}, names)
}

// A job that was stopped while some of it waited for room kept telling that it is queued.
func TestNothingOfAStoppedJobIsQueued(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.putJob(jobOf(t, "web", map[string]string{"count": "2"}))
	require.Equal(t, map[string]int{"g": 2}, w.eval("web").Eval.QueuedAllocations)
	w.putJob(jobOf(t, "web", map[string]string{"count": "2", "stop": "1"}))
	require.Equal(t, map[string]int{"g": 0}, w.eval("web").Eval.QueuedAllocations)
}
