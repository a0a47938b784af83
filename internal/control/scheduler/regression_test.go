package scheduler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/constraint"
	"github.com/drover-project/drover/internal/deepcopy"
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

// Work that a job of the same name had done, which was purged, counted as the new job's: it was dead at once and did nothing.
func TestASysbatchJobBeginsAnewAfterAPurge(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.addNode("n1", nil)
	w.putJob(newJob("once", drover.JobTypeSysBatch, 1))
	w.eval("once")
	w.change(w.created[0], func(a *drover.Allocation) { a.ClientStatus = drover.AllocClientComplete })
	w.eval("once")
	require.Len(t, w.created, 1)
	delete(w.jobs, "once")
	delete(w.versions, "once")
	w.eval("once")
	w.putJob(newJob("once", drover.JobTypeSysBatch, 1))
	w.eval("once")
	require.Len(t, w.created, 2)
}

// A system job that no node could run said nothing: `job run` ended well and `job plan` promised nothing. It does not wait for
// room, and once it was somewhere it is no failure that it is nowhere else.
func TestASystemJobThatFitsNowhereSaysWhy(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{drover.JobTypeSystem, drover.JobTypeSysBatch} {
		w := newWorld()
		j := newJob("all", kind, 1)
		j.Constraints = []*constraint.Constraint{{LTarget: "${node.unique.name}", RTarget: "n2", Operand: "="}}
		w.putJob(j)
		require.Empty(t, w.eval("all").Eval.FailedTGAllocs, "there are no nodes")
		w.addNode("n1", nil)
		out := w.eval("all")
		require.Equal(t, 1, out.Eval.FailedTGAllocs["g"].NodesFiltered)
		require.Equal(t, drover.EvalComplete, out.Eval.Status)
		require.Empty(t, out.Eval.BlockedEval)
		require.Empty(t, out.NewEvals)
		require.Equal(t, `group "g": fits no node: 1 of 1 nodes do not pass: ${node.unique.name} = n2`, out.Explanation.Groups[0].Sentence)
		w.addNode("n2", nil)
		require.Empty(t, w.eval("all").Eval.FailedTGAllocs)
		require.Len(t, w.live("all"), 1)
		w.nodes["n2"].SchedulingEligibility = drover.NodeIneligible
		require.Empty(t, w.eval("all").Eval.FailedTGAllocs)
	}
}

// A group that is no part of a deployment had failed allocations that waited to be replaced. The deployment was all healthy, and was
// not ended; nothing looked at it again. Found by internal/sim/rollouts.
func TestAGroupThatDoesNotChangeHoldsNoDeployment(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.addNode("n1", nil)
	register := func(image string) {
		j := newJob("web", drover.JobTypeService, 1)
		g := j.TaskGroups[0]
		g.Update = &drover.UpdateStrategy{MaxParallel: new(1)}
		g.ReschedulePolicy = &drover.ReschedulePolicy{Delay: new(30 * time.Second), DelayFunction: "constant", Unlimited: new(true)}
		h := deepcopy.Of(g)
		h.Name, g.Tasks[0].Config["image"] = "h", image
		j.TaskGroups = append(j.TaskGroups, h)
		w.putJob(j)
		w.eval("web")
		w.settle()
	}
	register("one")
	for _, a := range w.live("web") {
		w.health(a.ID, true)
	}
	require.Len(t, w.eval("web").Plan.DeploymentUpdates, 1)
	register("two")
	for _, d := range w.deployments {
		if d.Active() {
			delete(d.TaskGroups, "h")
		}
	}
	for _, a := range w.live("web") {
		if a.TaskGroup == "h" {
			w.change(a.ID, func(a *drover.Allocation) { a.DeploymentID = "" })
			w.change(a.ID, func(a *drover.Allocation) { report(a, drover.AllocClientFailed, w.now) })
		} else {
			w.health(a.ID, true)
		}
	}
	updates := w.eval("web").Plan.DeploymentUpdates
	require.Len(t, updates, 1)
	require.Equal(t, drover.DeploymentSuccessful, updates[0].Status)
}
