package scheduler

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
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

// A pool shrank while runners of its next version were starting: all of those stayed beside the old ones, more than the
// quarter that a roll-out may have beyond the size. Found by TestInvariants, once in 20,000.
func TestAPoolThatShrinksDuringItsRollout(t *testing.T) {
	t.Parallel()
	w := newWorld()
	for _, n := range []string{"n1", "n2", "n3"} {
		w.addNode(n, nil)
	}
	register := func(size, cpu int) {
		j := newJob("pool", drover.JobTypeService, 1)
		j.TaskGroups[0].Pool = &drover.WarmPool{Size: size}
		j.TaskGroups[0].Tasks[0].Resources.CPU = cpu
		w.putJob(j)
		w.eval("pool")
	}
	register(2, 100)
	w.settle()
	register(5, 200)
	require.Len(t, w.live("pool"), 5)
	register(2, 200)
	running := 0
	for _, a := range w.live("pool") {
		if a.ClientStatus == drover.AllocClientRunning {
			running++
		}
	}
	require.Equal(t, 2, running, "the old ones stay until new ones run")
	require.Len(t, w.live("pool"), 3)
	w.settle()
	w.eval("pool")
	w.settle()
	w.eval("pool")
	w.settle()
	require.Len(t, w.live("pool"), 2)
}
