package scheduler

import (
	"maps"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/scheduler/draft"
	"github.com/drover-project/drover/internal/optional"
)

// checkPromise: where a plan takes down what serves because the job changed, max_parallel less than the count go on serving. What
// was healthy in the roll-out under way and failed later is excused, as is what its policy never replaces. Nobody
// knows who of those that were updated in place a moment ago had been healthy (DEPLOYMENTS.md).
func (l *life) checkPromise(t *rapid.T, id string, out Output) {
	j := l.w.jobs[id]
	g := j.TaskGroups[0]
	stopped := stoppedBy(out)
	left, taken, late, alike := map[string]bool{}, map[string]bool{}, map[string]bool{}, mistaken{}
	for a := range l.w.AllocationsByJob("default", id) {
		l.well[a.ID] = l.well[a.ID] || a.DeploymentStatus.IsHealthy()
		why := stopped[a.ID]
		if l.failedLate(a, j) {
			late[a.Name] = true
		}
		alike.see(a, why, l.well[a.ID])
		switch {
		case a.Terminal() || l.proving(a) || !l.serves(a):
		case why == "":
			left[a.Name] = true
		case !optional.Value(a.DesiredTransition.Migrate) && (why == draft.WhyUpdating || why == draft.WhyNotNeeded):
			taken[a.Name] = true
		}
	}
	maps.DeleteFunc(taken, func(name string, _ bool) bool { return left[name] || late[name] })
	if len(taken) > alike.pairs() && !j.Stop && g.Update != nil {
		floor := *g.Count - *g.Update.MaxParallel - len(late) - alike.pairs()
		require.GreaterOrEqual(t, len(left), floor, "of %d, max_parallel %d, %d failed late:\n%s\nhad %s", *g.Count,
			*g.Update.MaxParallel, len(late), l.w.describe(out), l.w.list(id))
	}
}

// mistaken counts, of what runs and nobody judged since it joined its deployment, the allocations that a plan stops though they had
// been healthy before. It counts those, too, that it keeps though they never were.
type mistaken struct{ stopped, kept int }

func (m *mistaken) see(a *drover.Allocation, why string, wasHealthy bool) {
	switch {
	case a.Terminal() || a.ClientStatus != drover.AllocClientRunning || a.DeploymentID == "" || a.DeploymentStatus.Judged():
	case wasHealthy && (why == draft.WhyNotNeeded || why == draft.WhyUpdating):
		m.stopped++
	case !wasHealthy && why == "":
		m.kept++
	}
}

func (m *mistaken) pairs() int { return min(m.stopped, m.kept) }

// stoppedBy is what a plan stops, and why.
func stoppedBy(out Output) map[string]string {
	stopped := map[string]string{}
	for _, node := range out.Plan.NodeUpdate {
		for _, a := range node {
			if a.ServerTerminal() {
				stopped[a.ID] = a.DesiredDescription
			}
		}
	}
	return stopped
}

// failedLate reports whether the allocation was healthy in the roll-out under way and does not run.
func (l *life) failedLate(a *drover.Allocation, j *drover.Job) bool {
	d := l.w.deployments[a.DeploymentID]
	return d.Active() && d.JobVersion == j.Version && !a.ServerTerminal() && !l.proving(a) &&
		a.ClientStatus != drover.AllocClientRunning && a.DeploymentStatus.IsHealthy()
}

// serves reports whether an allocation runs and was healthy, before it was updated in place at least.
func (l *life) serves(a *drover.Allocation) bool {
	return a.ClientStatus == drover.AllocClientRunning && !a.DeploymentStatus.IsUnhealthy() && (a.DeploymentID == "" || l.well[a.ID])
}

// again registers a version of the roll-out job once more, with a change.
func (l *life) again(t *rapid.T, version *drover.Job, change func(*drover.TaskGroup)) {
	j := new(*version)
	g := new(*j.TaskGroups[0])
	change(g)
	j.TaskGroups, j.Stable = []*drover.TaskGroup{g}, false
	l.w.putJob(j)
	l.eval(t, j.ID)
}
