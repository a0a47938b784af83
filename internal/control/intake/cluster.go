package intake

import (
	"context"
	"regexp"

	"drover"
	"drover/internal/control/command"
)

var clusterName = regexp.MustCompile(`^[a-zA-Z0-9-]{1,128}$`)

// UpsertNamespace stores a namespace. Errors: Invalid.
func (in *Intake) UpsertNamespace(ctx context.Context, n *drover.Namespace) (Outcome, error) {
	if n == nil || !clusterName.MatchString(n.Name) {
		return Outcome{}, drover.Errorf(drover.Invalid, "namespace: the name must be 1 to 128 letters, digits or '-'")
	}
	if len(n.Description) > 256 {
		return Outcome{}, drover.Errorf(drover.Invalid, "description longer than 256")
	}
	return in.propose(ctx, &command.UpsertNamespaces{Namespaces: []*drover.Namespace{n}})
}

// DeleteNamespace removes a namespace. Errors: NotFound, Conflict while it has jobs, Invalid for the default one.
func (in *Intake) DeleteNamespace(ctx context.Context, name string) (Outcome, error) {
	return in.propose(ctx, &command.DeleteNamespaces{Names: []string{name}})
}

// UpsertNodePool stores a node pool. Errors: Invalid.
func (in *Intake) UpsertNodePool(ctx context.Context, p *drover.NodePool) (Outcome, error) {
	if p == nil || !clusterName.MatchString(p.Name) {
		return Outcome{}, drover.Errorf(drover.Invalid, "node pool: the name must be 1 to 128 letters, digits or '-'")
	}
	if len(p.Description) > 256 {
		return Outcome{}, drover.Errorf(drover.Invalid, "description longer than 256")
	}
	return in.propose(ctx, &command.UpsertNodePools{Pools: []*drover.NodePool{p}})
}

// DeleteNodePool removes a node pool. Errors: NotFound, Conflict while it has nodes or jobs, Invalid for built-in ones.
func (in *Intake) DeleteNodePool(ctx context.Context, name string) (Outcome, error) {
	return in.propose(ctx, &command.DeleteNodePools{Names: []string{name}})
}

// SetSchedulerConfig stores the scheduler's configuration; with cas only if the stored one's ModifyIndex is c's.
// Errors: Invalid.
func (in *Intake) SetSchedulerConfig(ctx context.Context, c drover.SchedulerConfiguration, cas bool) (updated bool, o Outcome, err error) {
	switch c.SchedulerAlgorithm {
	case "":
		c.SchedulerAlgorithm = drover.SchedulerBinpack
	case drover.SchedulerBinpack, drover.SchedulerSpread:
	default:
		return false, o, drover.Errorf(drover.Invalid, "invalid scheduler algorithm: %q", c.SchedulerAlgorithm)
	}
	index, result, err := in.deps.Log.Propose(ctx, &command.SetSchedulerConfig{Config: &c, CAS: cas})
	if err != nil {
		return false, o, err
	}
	updated, _ = result.(bool)
	return updated, Outcome{Index: index}, nil
}

// CollectGarbage removes everything that ended, whatever its age.
func (in *Intake) CollectGarbage(ctx context.Context) error {
	if in.deps.Collect == nil {
		return drover.Errorf(drover.NotImplemented, "garbage collection runs on servers only")
	}
	return in.deps.Collect(ctx)
}

// ReconcileSummaries does nothing: a job's summary is stored in the transaction that changes its allocations, so it
// cannot differ from them.
func (in *Intake) ReconcileSummaries(context.Context) error { return nil }
