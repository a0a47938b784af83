package server

import (
	"context"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/eventstream"
	"github.com/drover-project/drover/internal/control/intake"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/httpapi/nomad"
)

// The Nomad face declares what it needs; these adapters are the whole distance between its words and control's.

type nomadState struct{ *store.Store }

// Snapshot implements nomad.State.
func (s nomadState) Snapshot() nomad.Snapshot { return templateView{s.Store.Snapshot()} }

type nomadEvents struct{ *eventstream.Buffer }

// Subscribe implements nomad.Events.
func (e nomadEvents) Subscribe(topics map[string][]string, namespace string, index uint64) (nomad.Subscription, error) {
	sub, err := e.Buffer.Subscribe(eventstream.Request{Topics: topics, Namespace: namespace, Index: index})
	if err != nil {
		return nil, err
	}
	return namedEvents{sub}, nil
}

func diffJobs(old, job *drover.Job) any { return intake.Diff(old, job) }

// nomadIntake promotes the methods whose words are the same, and converts the others'.
type nomadIntake struct{ *intake.Intake }

func outcome(o intake.Outcome, err error) (nomad.Outcome, error) { return nomad.Outcome(o), err }

// RegisterJob implements nomad.Intake.
func (n nomadIntake) RegisterJob(ctx context.Context, r nomad.RegisterRequest) (nomad.Outcome, error) {
	return outcome(n.Intake.RegisterJob(ctx, intake.RegisterRequest(r)))
}

// DeregisterJob implements nomad.Intake.
func (n nomadIntake) DeregisterJob(ctx context.Context, r nomad.DeregisterRequest) (nomad.Outcome, error) {
	return outcome(n.Intake.DeregisterJob(ctx, intake.DeregisterRequest(r)))
}

// EvaluateJob implements nomad.Intake.
func (n nomadIntake) EvaluateJob(ctx context.Context, namespace, id string, forceReschedule bool) (nomad.Outcome, error) {
	return outcome(n.Intake.EvaluateJob(ctx, namespace, id, forceReschedule))
}

// ScaleJob implements nomad.Intake.
func (n nomadIntake) ScaleJob(ctx context.Context, r nomad.ScaleRequest) (nomad.Outcome, error) {
	return outcome(n.Intake.ScaleJob(ctx, intake.ScaleRequest(r)))
}

// RevertJob implements nomad.Intake.
func (n nomadIntake) RevertJob(ctx context.Context, r nomad.RevertRequest) (nomad.Outcome, error) {
	return outcome(n.Intake.RevertJob(ctx, intake.RevertRequest(r)))
}

// SetJobStable implements nomad.Intake.
func (n nomadIntake) SetJobStable(ctx context.Context, namespace, id string, version uint64, stable bool) (nomad.Outcome, error) {
	return outcome(n.Intake.SetJobStable(ctx, namespace, id, version, stable))
}

// TagJobVersion implements nomad.Intake.
func (n nomadIntake) TagJobVersion(ctx context.Context, r nomad.TagRequest) (nomad.Outcome, error) {
	return outcome(n.Intake.TagJobVersion(ctx, intake.TagRequest(r)))
}

// UntagJobVersion implements nomad.Intake.
func (n nomadIntake) UntagJobVersion(ctx context.Context, namespace, id, name string) (nomad.Outcome, error) {
	return outcome(n.Intake.UntagJobVersion(ctx, namespace, id, name))
}

// DeleteEvaluations implements nomad.Intake.
func (n nomadIntake) DeleteEvaluations(ctx context.Context, ids []string) (nomad.Outcome, error) {
	return outcome(n.Intake.DeleteEvaluations(ctx, ids))
}

// DispatchJob implements nomad.Intake.
func (n nomadIntake) DispatchJob(ctx context.Context, r nomad.DispatchRequest) (nomad.Outcome, error) {
	return outcome(n.Intake.DispatchJob(ctx, intake.DispatchRequest(r)))
}

// ForcePeriodic implements nomad.Intake.
func (n nomadIntake) ForcePeriodic(ctx context.Context, namespace, id string) (nomad.Outcome, error) {
	return outcome(n.Intake.ForcePeriodic(ctx, namespace, id))
}

// StopAllocation implements nomad.Intake.
func (n nomadIntake) StopAllocation(ctx context.Context, id string, noShutdownDelay, reschedule bool) (nomad.Outcome, error) {
	return outcome(n.Intake.StopAllocation(ctx, id, noShutdownDelay, reschedule))
}

// SetEligibility implements nomad.Intake.
func (n nomadIntake) SetEligibility(ctx context.Context, nodeID, eligibility string) (nomad.Outcome, error) {
	return outcome(n.Intake.SetEligibility(ctx, nodeID, eligibility))
}

// DrainNode implements nomad.Intake.
func (n nomadIntake) DrainNode(ctx context.Context, r nomad.DrainRequest) (nomad.Outcome, error) {
	return outcome(n.Intake.DrainNode(ctx, intake.DrainRequest(r)))
}

// EvaluateNode implements nomad.Intake.
func (n nomadIntake) EvaluateNode(ctx context.Context, nodeID string) (nomad.Outcome, error) {
	return outcome(n.Intake.EvaluateNode(ctx, nodeID))
}

// PurgeNode implements nomad.Intake.
func (n nomadIntake) PurgeNode(ctx context.Context, nodeID string) (nomad.Outcome, error) {
	return outcome(n.Intake.PurgeNode(ctx, nodeID))
}

// SetNodeMeta implements nomad.Intake.
func (n nomadIntake) SetNodeMeta(ctx context.Context, nodeID string, change map[string]*string) (nomad.Outcome, error) {
	return outcome(n.Intake.SetNodeMeta(ctx, nodeID, change))
}

// UpsertNamespace implements nomad.Intake.
func (n nomadIntake) UpsertNamespace(ctx context.Context, ns *drover.Namespace) (nomad.Outcome, error) {
	return outcome(n.Intake.UpsertNamespace(ctx, ns))
}

// DeleteNamespace implements nomad.Intake.
func (n nomadIntake) DeleteNamespace(ctx context.Context, name string) (nomad.Outcome, error) {
	return outcome(n.Intake.DeleteNamespace(ctx, name))
}

// UpsertNodePool implements nomad.Intake.
func (n nomadIntake) UpsertNodePool(ctx context.Context, p *drover.NodePool) (nomad.Outcome, error) {
	return outcome(n.Intake.UpsertNodePool(ctx, p))
}

// DeleteNodePool implements nomad.Intake.
func (n nomadIntake) DeleteNodePool(ctx context.Context, name string) (nomad.Outcome, error) {
	return outcome(n.Intake.DeleteNodePool(ctx, name))
}

// PromoteDeployment implements nomad.Intake.
func (n nomadIntake) PromoteDeployment(ctx context.Context, id string, groups []string) (nomad.Outcome, error) {
	return outcome(n.Intake.PromoteDeployment(ctx, id, groups))
}

// FailDeployment implements nomad.Intake.
func (n nomadIntake) FailDeployment(ctx context.Context, id string) (nomad.Outcome, error) {
	return outcome(n.Intake.FailDeployment(ctx, id))
}

// PauseDeployment implements nomad.Intake.
func (n nomadIntake) PauseDeployment(ctx context.Context, id string, pause bool) (nomad.Outcome, error) {
	return outcome(n.Intake.PauseDeployment(ctx, id, pause))
}

// UnblockDeployment implements nomad.Intake.
func (n nomadIntake) UnblockDeployment(ctx context.Context, id string) (nomad.Outcome, error) {
	return outcome(n.Intake.UnblockDeployment(ctx, id))
}

// SetAllocHealth implements nomad.Intake.
func (n nomadIntake) SetAllocHealth(ctx context.Context, deploymentID string, healthy, unhealthy []string) (nomad.Outcome, error) {
	return outcome(n.Intake.SetAllocHealth(ctx, deploymentID, healthy, unhealthy))
}

// PlanJob implements nomad.Intake.
func (n nomadIntake) PlanJob(ctx context.Context, job *drover.Job, diff bool) (nomad.Preview, error) {
	p, err := n.Intake.PlanJob(ctx, job, diff)
	return nomad.Preview(p), err
}

// SetSchedulerConfig implements nomad.Intake.
func (n nomadIntake) SetSchedulerConfig(ctx context.Context, c drover.SchedulerConfiguration, cas bool) (bool, nomad.Outcome, error) {
	updated, o, err := n.Intake.SetSchedulerConfig(ctx, c, cas)
	return updated, nomad.Outcome(o), err
}
