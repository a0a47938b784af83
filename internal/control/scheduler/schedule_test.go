package scheduler

import (
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/constraint"
	"github.com/drover-project/drover/internal/control/scheduler/feasible"
)

func TestBlockedEvaluationStaysBlocked(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.putJob(newJob("web", drover.JobTypeService, 1))
	first := w.eval("web")
	require.Equal(t, drover.EvalComplete, first.Eval.Status)
	require.Len(t, first.NewEvals, 1)
	blocked := first.NewEvals[0]
	require.Equal(t, first.Eval.BlockedEval, blocked.ID)
	require.Equal(t, first.Eval.ID, blocked.PreviousEval)
	again := w.evalAs(blocked)
	require.Equal(t, drover.EvalBlocked, again.Eval.Status)
	require.Empty(t, again.NewEvals)
	w.addNode("n1", nil)
	done := w.evalAs(again.Eval)
	require.Equal(t, drover.EvalComplete, done.Eval.Status)
	require.Empty(t, done.Eval.FailedTGAllocs)
	require.Equal(t, map[string]int{"g": 0}, done.Eval.QueuedAllocations)
}

func TestIdsDifferForAttemptsAndStates(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.addNode("n1", nil)
	w.putJob(newJob("web", drover.JobTypeService, 2))
	seen := map[string]bool{}
	for attempt := range 3 {
		w.index++
		for _, e := range []string{"a", "b"} {
			out := Schedule(Input{Eval: &drover.Evaluation{ID: e, Namespace: "default", JobID: "web"}, Snapshot: w, Now: w.now, Attempt: attempt})
			for _, a := range placed(out) {
				require.False(t, seen[a.ID])
				seen[a.ID] = true
			}
		}
	}
	require.Len(t, seen, 12)
}

func TestNothingToDo(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.addNode("n1", nil)
	periodic := newJob("cron", drover.JobTypeBatch, 1)
	periodic.Periodic = &drover.PeriodicConfig{}
	w.putJob(periodic)
	template := newJob("template", drover.JobTypeBatch, 1)
	template.ParameterizedJob = &drover.ParameterizedJobConfig{}
	w.putJob(template)
	for _, id := range []string{"cron", "template", "unknown"} {
		out := w.eval(id)
		require.True(t, out.Plan.Empty(), id)
		require.Equal(t, drover.EvalComplete, out.Eval.Status)
		require.Empty(t, out.NewEvals)
	}
}

func TestAnnotations(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.addNode("n1", nil)
	w.putJob(newJob("web", drover.JobTypeService, 3))
	w.eval("web")
	w.settle()
	j := newJob("web", drover.JobTypeService, 4)
	j.TaskGroups[0].Tasks[0].Driver = "mock_driver"
	j.TaskGroups[0].Update = &drover.UpdateStrategy{MaxParallel: new(2)}
	w.putJob(j)
	out := Schedule(Input{Eval: &drover.Evaluation{ID: "e", Namespace: "default", JobID: "web", AnnotatePlan: true}, Snapshot: w, Now: w.now})
	require.Equal(t, drover.DesiredUpdates{Ignore: 2, Place: 1, DestructiveUpdate: 1}, *out.Eval.PlanAnnotations.DesiredTGUpdates["g"])
}

func TestRefused(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.addNode("n1", nil)
	w.addNode("n2", nil)
	j := newJob("web", drover.JobTypeService, 2)
	j.Constraints = []*constraint.Constraint{{Operand: feasible.DistinctHosts}}
	w.putJob(j)
	out := w.eval("web")
	result := &drover.PlanResult{NodeAllocation: map[string][]*drover.Allocation{"n1": out.Plan.NodeAllocation["n1"]}}
	require.True(t, Progressed(result))
	refused := Refused(out.Plan, result)
	require.Len(t, refused, 1)
	for _, a := range refused {
		require.Equal(t, "n2", a.NodeID)
	}
	require.False(t, Progressed(&drover.PlanResult{}))
}

// fast has the optional powers of a snapshot.
type fast struct{ *world }

func (f fast) NodesUsed() iter.Seq2[*drover.Node, drover.Capacity] {
	return func(yield func(*drover.Node, drover.Capacity) bool) {
		for _, id := range f.order {
			if !yield(f.nodes[id], f.used[id]) {
				return
			}
		}
	}
}

func (f fast) ActiveAllocationsByJob(ns, id string) iter.Seq[*drover.Allocation] {
	return func(yield func(*drover.Allocation) bool) {
		for a := range f.AllocationsByJob(ns, id) {
			done := a.ClientTerminal() && (a.ServerTerminal() || a.Claim != nil)
			if !done && !yield(a) {
				return
			}
		}
	}
}

func TestOptionalPowersChangeNothing(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.addNode("n1", nil)
	w.addNode("n2", nil)
	j := newJob("env", drover.JobTypeService, 1)
	j.TaskGroups[0].Pool = &drover.WarmPool{Size: 4}
	w.putJob(j)
	w.eval("env")
	w.settle()
	w.change(w.created[0], func(a *drover.Allocation) { a.Claim = &drover.Claim{} })
	w.change(w.created[1], func(a *drover.Allocation) {
		a.Claim = &drover.Claim{}
		report(a, drover.AllocClientComplete, w.now)
	})
	e := &drover.Evaluation{ID: "e", Namespace: "default", JobID: "env"}
	require.Equal(t, Schedule(Input{Eval: e, Snapshot: w, Now: w.now}).Plan, Schedule(Input{Eval: e, Snapshot: fast{w}, Now: w.now}).Plan)
}

// A paused deployment goes on replacing what failed, but does not spread the new version.
func TestPausedDeployment(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.addNode("n1", nil)
	for _, image := range []string{"a", "b"} {
		w.putJob(jobOf(t, "web", map[string]string{"count": "2", "update": "1", "image": image, "attempts": "3"}))
		w.eval("web")
		w.settle()
	}
	for id, d := range w.deployments {
		if d.JobVersion == 1 {
			d = new(*d)
			d.Status = drover.DeploymentPaused
			w.deployments[id] = d
		}
	}
	w.health(w.named(t, "web.g[0]"), true)
	require.Empty(t, placed(w.eval("web")))
	w.change(w.named(t, "web.g[1]"), func(a *drover.Allocation) { report(a, drover.AllocClientFailed, w.now.Add(-time.Minute)) })
	all := placed(w.eval("web"))
	require.Len(t, all, 1)
	require.Equal(t, "web.g[1]", all[0].Name)
}

func TestPreventRescheduleOnLost(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.addNode("n1", nil)
	j := newJob("db", drover.JobTypeService, 1)
	j.TaskGroups[0].PreventRescheduleOnLost = true
	w.putJob(j)
	w.eval("db")
	w.addNode("n1", func(n *drover.Node) { n.Status = drover.NodeStatusDown })
	w.addNode("n2", nil)
	require.True(t, w.eval("db").Plan.Empty())
	delete(w.nodes, "n1")
	w.order = []string{"n2"}
	require.Len(t, placed(w.eval("db")), 1)
}

// What its author wants nowhere else while its node may come back moves when an operator drains that node, as on Nomad. Before, such a
// drain of a dead node never ended.
func TestADrainMovesWhatIsNotRescheduledOnLost(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.addNode("n1", nil)
	j := newJob("db", drover.JobTypeService, 1)
	j.TaskGroups[0].PreventRescheduleOnLost = true
	w.putJob(j)
	w.eval("db")
	w.addNode("n1", func(n *drover.Node) { n.Status = drover.NodeStatusDown })
	w.addNode("n2", nil)
	require.True(t, w.eval("db").Plan.Empty())
	w.change(w.created[0], func(a *drover.Allocation) { a.DesiredTransition.Migrate = new(true) })
	plan := w.eval("db")
	require.Len(t, placed(plan), 1)
	require.Len(t, plan.Plan.NodeUpdate["n1"], 1)
	require.Equal(t, drover.AllocClientLost, plan.Plan.NodeUpdate["n1"][0].ClientStatus)
}

// A batch allocation that a drain wanted to move, but that ended well before, has done its work.
func TestBatchEndsDuringDrain(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.addNode("n1", nil)
	w.putJob(newJob("sum", drover.JobTypeBatch, 1))
	w.eval("sum")
	w.change(w.created[0], func(a *drover.Allocation) {
		a.DesiredTransition.Migrate = new(true)
		report(a, drover.AllocClientComplete, w.now)
	})
	require.True(t, w.eval("sum").Plan.Empty())
}

func TestNoPoolNameIsTheDefaultPool(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.addNode("n1", func(n *drover.Node) { n.NodePool = "" })
	w.putJob(newJob("web", drover.JobTypeService, 1))
	require.Len(t, placed(w.eval("web")), 1)
}
