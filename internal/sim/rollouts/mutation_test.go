package rollouts

import (
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/scheduler"
)

// mutations are rules that are broken on purpose, by what the scheduler is told, and words of what a check says of each.
var mutations = map[string]struct {
	tamper func(scheduler.Input) scheduler.Input
	found  string
}{
	"updates know no limit":               {told(func(g *drover.TaskGroup) { g.Update.MaxParallel = new(100) }), "allocations that serve"},
	"new versions need no canaries":       {told(func(g *drover.TaskGroup) { g.Update.Canary = 0 }), "before its canaries were promoted"},
	"there is one more than wanted":       {told(func(g *drover.TaskGroup) { g.Count = new(*g.Count + 1) }), "allocations of"},
	"there is one more canary":            {told(func(g *drover.TaskGroup) { g.Update.Canary++ }), "canaries of"},
	"what failed is replaced too early":   {later, "before its time"},
	"failed versions go on":               {deployed(hideFailed), "whose deployment failed"},
	"nobody hears that something is well": {deployed(hideHealth), "is running: Deployment is running"},
}

// told has the scheduler take the groups of services with an update strategy for others.
func told(change func(g *drover.TaskGroup)) func(scheduler.Input) scheduler.Input {
	return func(in scheduler.Input) scheduler.Input {
		in.Snapshot = tampered{Snapshot: in.Snapshot, job: func(j *drover.Job) *drover.Job {
			other := new(*j)
			other.TaskGroups = nil
			for _, g := range j.TaskGroups {
				g = new(*g)
				if g.Update != nil && j.Type == drover.JobTypeService {
					g.Update = new(*g.Update)
					change(g)
				}
				other.TaskGroups = append(other.TaskGroups, g)
			}
			return other
		}}
		return in
	}
}

// later has the scheduler take the time for an hour later.
func later(in scheduler.Input) scheduler.Input {
	in.Now = in.Now.Add(time.Hour)
	return in
}

// deployed has the scheduler see other deployments; nil is none.
func deployed(see func(*drover.Deployment) *drover.Deployment) func(scheduler.Input) scheduler.Input {
	return func(in scheduler.Input) scheduler.Input {
		in.Snapshot = tampered{Snapshot: in.Snapshot, see: see}
		return in
	}
}

func hideFailed(d *drover.Deployment) *drover.Deployment {
	if d.Status == drover.DeploymentFailed {
		return nil
	}
	return d
}

func hideHealth(d *drover.Deployment) *drover.Deployment {
	other := new(*d)
	other.TaskGroups = map[string]*drover.DeploymentState{}
	for name, g := range d.TaskGroups {
		g = new(*g)
		g.HealthyAllocs = 0
		other.TaskGroups[name] = g
	}
	return other
}

// tampered is a state that is not as the scheduler is told.
type tampered struct {
	scheduler.Snapshot
	job func(*drover.Job) *drover.Job
	see func(*drover.Deployment) *drover.Deployment
}

// Job implements scheduler.Snapshot.
func (s tampered) Job(namespace, id string) *drover.Job {
	j := s.Snapshot.Job(namespace, id)
	if s.job == nil || j == nil {
		return j
	}
	return s.job(j)
}

// DeploymentsByJob implements scheduler.Snapshot.
func (s tampered) DeploymentsByJob(namespace, id string) iter.Seq[*drover.Deployment] {
	return func(yield func(*drover.Deployment) bool) {
		for d := range s.Snapshot.DeploymentsByJob(namespace, id) {
			if s.see != nil {
				d = s.see(d)
			}
			if d != nil && !yield(d) {
				return
			}
		}
	}
}

// TestTheChecksFind: each broken rule is found within some histories, by what is to find it.
func TestTheChecksFind(t *testing.T) {
	t.Parallel()
	for name, m := range mutations {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := uint64(1); seed <= 60; seed++ {
				if r := run(t.Context(), Random(seed), nil, m.tamper); strings.Contains(r.Failure, m.found) {
					t.Logf("seed=%d: %s", seed, r.Failure)
					return
				}
			}
			t.Fatal("not found")
		})
	}
}
