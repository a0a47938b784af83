package reconcile

import (
	"iter"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/scheduler/draft"
	"github.com/drover-project/drover/internal/control/scheduler/feasible"
	"github.com/drover-project/drover/volume"
)

// State is what the reconciler reads beside the job's allocations. Values read are never changed.
type State interface {
	QuickEnds(namespace, id string) drover.QuickEnds
	JobVersions(namespace, id string) []*drover.Job // newest first
	DeploymentsByJob(namespace, id string) iter.Seq[*drover.Deployment]
	HostVolume(id string) *volume.HostVolume
}

// Reconciler compares one job with its allocations, for one evaluation, and writes into that evaluation's draft.
type Reconciler struct {
	*draft.Draft

	// Slowed is why the brake put placements off, for people; "" if it did not.
	Slowed string

	state       State
	matcher     *feasible.Matcher
	deployments deployments
	updateKinds map[updateKey]updateKind
}

// New returns the reconciler of a draft's job.
func New(d *draft.Draft, s State, m *feasible.Matcher) *Reconciler {
	return &Reconciler{Draft: d, state: s, matcher: m, updateKinds: map[updateKey]updateKind{}}
}

// DeploymentID is the id of the deployment under way, "" if there is none.
func (r *Reconciler) DeploymentID() string { return r.deployments.id() }

// Finish puts what became of the job's deployments into the draft, once everything is placed that is to be.
func (r *Reconciler) Finish() { r.deployments.finish(r) }

// StopAll ends all that a job has which is stopped or unknown.
func (r *Reconciler) StopAll(allocs iter.Seq[*drover.Allocation]) {
	r.deployments.load(r)
	r.deployments.cancelActive("Cancelled because job is stopped")
	for a := range allocs {
		if a.ClientTerminal() {
			continue
		}
		if !a.ServerTerminal() || r.Lost(a.NodeID) {
			r.End(a, draft.WhyNotNeeded)
			r.Updates(a.TaskGroup).Stop++
		}
	}
}

// Complete fills in what a new allocation of a placement takes from what was before it: the chain of reschedules, and the
// version and the deployment that it belongs to.
func (r *Reconciler) Complete(a *drover.Allocation, p Placement, g *drover.TaskGroup, n *drover.Node) {
	if p.Previous != nil {
		a.PreviousAllocation = p.Previous.ID
	}
	if p.Previous != nil && !p.Fresh {
		a.RescheduleTracker = trackerOf(p.Previous, g.ReschedulePolicy, p.Rescheduled, r.Now)
	}
	switch {
	case p.Job != nil && !r.takesOver(p.Job, a, n):
		a.Job, a.DeploymentID = p.Job, r.deployments.of(p.Job, g.Name)
	case r.deployments.state(g.Name) != nil:
		a.DeploymentID = r.deployments.id()
		if p.Canary {
			a.DeploymentStatus = &drover.AllocDeploymentStatus{Canary: true}
		}
	}
}
