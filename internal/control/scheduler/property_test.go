package scheduler

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/constraint"
	"github.com/drover-project/drover/internal/control/scheduler/feasible"
	"github.com/drover-project/drover/internal/optional"
)

// life drives a world through random events and checks after each evaluation what must always hold.
type life struct {
	w    *world
	jobs []string
	well map[string]bool // allocations that were healthy once
}

func (l *life) check(t *rapid.T) {
	for _, id := range l.w.order {
		ok, dimension := l.w.Used(id).Fits(l.w.nodes[id].Total())
		require.True(t, ok, "%s is over its %s", id, dimension)
	}
	for _, id := range l.jobs {
		l.checkJob(t, l.w.jobs[id])
	}
}

func (l *life) checkJob(t *rapid.T, j *drover.Job) {
	g := j.TaskGroups[0]
	names, hosts, claimed, canaries := map[string]int{}, map[string]int{}, 0, 0
	live := l.w.live(j.ID)
	for _, a := range live {
		if a.Claim != nil {
			claimed++
		}
		if a.DeploymentStatus != nil && a.DeploymentStatus.Canary {
			canaries++
		} else {
			names[a.Name]++
			require.Equal(t, 1, names[a.Name], "%s twice", a.Name)
		}
		hosts[a.NodeID]++
	}
	switch {
	case j.Stop:
		require.Empty(t, live)
	case g.Pool != nil:
		require.LessOrEqual(t, len(live)-claimed, g.Pool.Size+max(1, g.Pool.Size/4))
		if g.Pool.MaxRunners > 0 {
			require.LessOrEqual(t, len(live), max(g.Pool.MaxRunners, claimed))
		}
	default:
		require.LessOrEqual(t, len(live)-canaries, *g.Count)
	}
	for _, c := range j.Constraints {
		if c.Operand == feasible.DistinctHosts {
			for node, n := range hosts {
				require.Equal(t, 1, n, "%s has %d of %s", node, n, j.ID)
			}
		}
	}
}

// eval schedules twice, compares, commits once.
func (l *life) eval(t *rapid.T, job string) {
	e := &drover.Evaluation{ID: fmt.Sprintf("e%d", l.w.index), Namespace: "default", JobID: job, Status: drover.EvalPending}
	in := Input{Eval: e, Snapshot: l.w, Now: l.w.now, Seed: 3}
	one, two := Schedule(in), Schedule(in)
	require.Empty(t, cmp.Diff(one, two, cmp.AllowUnexported(GroupExplanation{})))
	for node, stopped := range one.Plan.NodeUpdate {
		for _, s := range stopped {
			for _, a := range one.Plan.NodeAllocation[node] {
				require.NotEqual(t, s.ID, a.ID, "stopped and placed at once")
			}
		}
	}
	for _, evicted := range one.Plan.NodePreemptions {
		for _, a := range evicted {
			require.Nil(t, a.Claim)
			require.Less(t, a.Job.Priority, l.w.jobs[job].Priority)
		}
	}
	served := l.serving(job)
	l.checkPromise(t, job, one)
	l.w.apply(one)
	l.check(t)
	l.checkRollout(t, job, served, one)
	l.checkRest(t, job, one)
}

// serving counts what of a job runs beside canaries, where it may stay; two of one name, which a promotion leaves, as one.
func (l *life) serving(id string) int {
	names := map[string]bool{}
	for _, a := range l.w.live(id) {
		node := l.w.nodes[a.NodeID]
		if !l.proving(a) && !optional.Value(a.DesiredTransition.Migrate) && node.Status == drover.NodeStatusReady {
			names[a.Name] = true
		}
	}
	return len(names)
}

// proving reports whether an allocation is a canary that was not promoted.
func (l *life) proving(a *drover.Allocation) bool {
	d := l.w.deployments[a.DeploymentID]
	return d != nil && !d.TaskGroups["g"].Promoted && a.DeploymentStatus != nil && a.DeploymentStatus.Canary
}

// checkRollout: while canaries wait there are never more than wanted, and what serves beside them is not taken away.
func (l *life) checkRollout(t *rapid.T, id string, served int, out Output) {
	j := l.w.jobs[id]
	for d := range l.w.DeploymentsByJob("default", id) {
		s := d.TaskGroups["g"]
		if j.Stop || !d.Active() || d.JobVersion != j.Version || s.DesiredCanaries == 0 || s.Promoted {
			continue
		}
		canaries := 0
		for a := range l.w.AllocationsByJob("default", id) {
			if a.DeploymentID == d.ID && l.proving(a) && !a.ServerTerminal() {
				canaries++
			}
		}
		require.LessOrEqual(t, canaries, s.DesiredCanaries)
		require.GreaterOrEqual(t, l.serving(id), min(served, j.TaskGroups[0].DesiredCount()), "what serves was taken away:\n%s\nleft %s",
			l.w.describe(out), l.w.list(id))
	}
}

// checkRest: a second look at the same state places nothing, so no placement is repeated without a change or a delay.
func (l *life) checkRest(t *rapid.T, id string, first Output) {
	if id == "pool" || len(first.Plan.NodePreemptions)+len(first.Plan.DeploymentUpdates) > 0 {
		return
	}
	for _, x := range first.Explanation.Groups {
		if x.Failed > 0 {
			return
		}
	}
	l.w.index++
	e := &drover.Evaluation{ID: fmt.Sprintf("again-%d", l.w.index), Namespace: "default", JobID: id, Priority: 50, Status: drover.EvalPending}
	again := Schedule(Input{Eval: e, Snapshot: l.w, Now: l.w.now, Seed: 7})
	require.Empty(t, again.Plan.NodeAllocation, "placed again at once:\nfirst %s\nagain %s\nhas %s", l.w.describe(first),
		l.w.describe(again), l.w.list(id))
}

func (l *life) pickLive(t *rapid.T) string {
	var ids []string
	for _, id := range l.w.created {
		if !l.w.allocs[id].Terminal() {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		t.Skip("nothing runs")
	}
	return rapid.SampledFrom(ids).Draw(t, "alloc")
}

func drawJob(t *rapid.T, id string) *drover.Job {
	j := newJob(id, drover.JobTypeService, rapid.IntRange(0, 8).Draw(t, "count"))
	g := j.TaskGroups[0]
	g.Tasks[0].Config["image"] = rapid.SampledFrom([]string{"a", "b"}).Draw(t, "image")
	g.Tasks[0].Resources.CPU = 100 * rapid.IntRange(1, 12).Draw(t, "cpu")
	g.ReschedulePolicy = &drover.ReschedulePolicy{Delay: new(10 * time.Second), Unlimited: new(true)}
	switch id {
	case "pool":
		g.Pool = &drover.WarmPool{Size: rapid.IntRange(0, 6).Draw(t, "size"), MaxRunners: rapid.IntRange(0, 8).Draw(t, "max")}
	case "hosts":
		j.Constraints = []*constraint.Constraint{{Operand: feasible.DistinctHosts}}
	case "roll":
		g.Update = &drover.UpdateStrategy{
			MaxParallel: new(rapid.IntRange(1, 3).Draw(t, "parallel")),
			Canary:      rapid.IntRange(0, 2).Draw(t, "canary"),
		}
	}
	j.Priority = rapid.SampledFrom([]int{40, 50, 60}).Draw(t, "priority")
	j.Stop = rapid.IntRange(0, 9).Draw(t, "stop") == 0
	return j
}

// TestInvariants: never over capacity, never a name or a distinct host twice, never more than wanted, always the same
// answer to the same question.
func TestInvariants(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := &life{w: newWorld(), well: map[string]bool{}, jobs: []string{"plain", "hosts", "roll", "pool"}}
		l.w.config.PreemptionConfig.ServiceSchedulerEnabled = rapid.Bool().Draw(t, "preemption")
		for i := range rapid.IntRange(1, 5).Draw(t, "nodes") {
			l.w.addNode(fmt.Sprintf("n%d", i), nil)
		}
		for _, id := range l.jobs {
			l.w.putJob(drawJob(t, id))
		}
		job := func(t *rapid.T) string { return rapid.SampledFrom(l.jobs).Draw(t, "job") }
		t.Repeat(map[string]func(*rapid.T){
			"eval":   func(t *rapid.T) { l.eval(t, job(t)) },
			"settle": func(*rapid.T) { l.w.settle() },
			"register": func(t *rapid.T) {
				id := job(t)
				l.w.putJob(drawJob(t, id))
				l.eval(t, id)
			},
			"node": func(t *rapid.T) {
				id := rapid.SampledFrom(l.w.order).Draw(t, "node")
				status := rapid.SampledFrom([]string{drover.NodeStatusReady, drover.NodeStatusReady, drover.NodeStatusDown}).Draw(t, "status")
				l.w.addNode(id, func(n *drover.Node) { n.Status = status })
			},
			"end": func(t *rapid.T) {
				status := rapid.SampledFrom([]string{drover.AllocClientFailed, drover.AllocClientComplete}).Draw(t, "status")
				l.w.change(l.pickLive(t), func(a *drover.Allocation) { report(a, status, l.w.now) })
			},
			"migrate": func(t *rapid.T) {
				l.w.change(l.pickLive(t), func(a *drover.Allocation) { a.DesiredTransition.Migrate = new(true) })
			},
			"claim": func(t *rapid.T) {
				id := l.pickLive(t)
				if a := l.w.allocs[id]; a.JobID != "pool" || a.ClientStatus != drover.AllocClientRunning {
					t.Skip("not a warm runner")
				}
				l.w.change(id, func(a *drover.Allocation) { a.Claim = &drover.Claim{RunnerID: id} })
			},
			"healthy": func(t *rapid.T) {
				id := l.pickLive(t)
				if a := l.w.allocs[id]; a.DeploymentID == "" || a.DeploymentStatus.Judged() {
					t.Skip("no deployment")
				}
				l.w.health(id, rapid.IntRange(0, 4).Draw(t, "healthy") > 0)
			},
			"promote": func(t *rapid.T) {
				if !l.promotable("roll") {
					t.Skip("canaries that are not healthy")
				}
				l.w.deploymentCommand("roll", "promote")
			},
			"pause":  func(*rapid.T) { l.w.deploymentCommand("roll", "pause") },
			"resume": func(*rapid.T) { l.w.deploymentCommand("roll", "resume") },
			"scale": func(t *rapid.T) {
				l.again(t, l.w.jobs["roll"], func(g *drover.TaskGroup) { g.Count = new(rapid.IntRange(0, 8).Draw(t, "count")) })
			},
			"revert": func(t *rapid.T) {
				l.again(t, rapid.SampledFrom(l.w.versions["roll"]).Draw(t, "version"), func(*drover.TaskGroup) {})
			},
			"fail": func(*rapid.T) { l.w.deploymentCommand("roll", "fail") },
			"advance": func(t *rapid.T) {
				l.w.now = l.w.now.Add(time.Duration(rapid.IntRange(1, 90).Draw(t, "seconds")) * time.Second)
			},
		})
		if rapid.IntRange(0, 3).Draw(t, "converge") == 0 {
			l.converge(t)
		}
	})
}

// promotable reports whether all canaries of the job's roll-out are healthy: else nobody can promote them.
func (l *life) promotable(id string) bool {
	for d := range l.w.DeploymentsByJob("default", id) {
		healthy := 0
		for a := range l.w.AllocationsByJob("default", id) {
			if a.DeploymentID == d.ID && l.proving(a) && !a.Terminal() && a.DeploymentStatus.IsHealthy() {
				healthy++
			}
		}
		if s := d.TaskGroups["g"]; d.Active() && s.Unpromoted() && healthy < s.DesiredCanaries {
			return false
		}
	}
	return true
}

// converge gives the jobs room, health and time, and asserts that everything wanted comes to run.
func (l *life) converge(t *rapid.T) {
	for i := range 8 {
		l.w.addNode(fmt.Sprintf("big%d", i), func(n *drover.Node) { n.NodeResources.Cpu.CpuShares = 40_000 })
	}
	for range 10 {
		for _, id := range l.jobs {
			l.eval(t, id)
		}
		l.w.settle()
		for _, id := range l.w.created {
			a := l.w.allocs[id]
			switch {
			case a.Terminal():
			case a.DeploymentStatus.IsUnhealthy():
				l.w.change(id, func(a *drover.Allocation) { report(a, drover.AllocClientFailed, l.w.now) })
			case a.DeploymentID != "" && !a.DeploymentStatus.Judged():
				l.w.health(id, true)
			}
		}
		l.w.deploymentCommand("roll", "resume")
		if l.promotable("roll") {
			l.w.deploymentCommand("roll", "promote")
		}
		l.w.now = l.w.now.Add(10 * time.Minute)
	}
	for _, id := range l.jobs {
		if !l.undecided(id) {
			l.checkConverged(t, l.w.jobs[id])
		}
	}
}

// undecided reports whether a roll-out of the job's version failed, or waits for a person or for its deadline, which this
// world has not. Then one of its allocations failed after it was healthy, or a canary ended.
func (l *life) undecided(id string) bool {
	for d := range l.w.DeploymentsByJob("default", id) {
		if d.Status == drover.DeploymentFailed && d.JobVersion == l.w.jobs[id].Version {
			return true
		}
	}
	for a := range l.w.AllocationsByJob("default", id) {
		d := l.w.deployments[a.DeploymentID]
		if d.Active() && a.ClientTerminal() && !a.ServerTerminal() && a.NextAllocation == "" && (a.DeploymentStatus.IsHealthy() || l.proving(a)) {
			return true
		}
	}
	return false
}

func (l *life) checkConverged(t *rapid.T, j *drover.Job) {
	g := j.TaskGroups[0]
	live, claimed := l.w.live(j.ID), 0
	for _, a := range live {
		require.Equal(t, drover.AllocClientRunning, a.ClientStatus)
		if a.Claim != nil {
			claimed++
		} else {
			require.Equal(t, j.Version, a.Version(), "%s runs an old version", a.Name)
		}
	}
	want := g.DesiredCount()
	if g.Pool != nil && g.Pool.MaxRunners > 0 {
		want = max(0, min(want, g.Pool.MaxRunners-claimed))
	}
	if j.Stop {
		want = 0
	}
	require.Equal(t, want, len(live)-claimed, j.ID)
}
