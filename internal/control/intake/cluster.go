package intake

import (
	"context"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/lazyregexp"
	"github.com/drover-project/drover/internal/tenant"
	"github.com/drover-project/drover/tenancy"
)

var (
	clusterName = lazyregexp.New(`^[a-zA-Z0-9-]{1,128}$`)
	poolName    = lazyregexp.New(`^[a-zA-Z0-9_-]{1,128}$`)
)

// UpsertNamespace stores a namespace. Errors: Invalid.
func (in *Intake) UpsertNamespace(ctx context.Context, n *tenancy.Namespace) (drover.Outcome, error) {
	if n == nil {
		return drover.Outcome{}, drover.Errorf(drover.Invalid, "missing namespace")
	}
	if !clusterName().MatchString(n.Name) {
		return drover.Outcome{}, drover.Errorf(drover.Invalid, "invalid name %q. Must be 1 to 128 letters, digits or '-'", n.Name)
	}
	if len(n.Description) > 256 {
		return drover.Outcome{}, drover.Errorf(drover.Invalid, "description longer than 256")
	}
	s := in.deps.Store.Snapshot()
	if err := tenant.Check(n, func(pool string) bool { return s.NodePool(pool) != nil }); err != nil {
		return drover.Outcome{}, err
	}
	return in.propose(ctx, &command.UpsertNamespaces{Namespaces: []*tenancy.Namespace{n}})
}

// DeleteNamespace removes a namespace. Errors: NotFound, Conflict while it has jobs, Invalid for the default one.
func (in *Intake) DeleteNamespace(ctx context.Context, name string) (drover.Outcome, error) {
	return in.propose(ctx, &command.DeleteNamespaces{Names: []string{name}})
}

// UpsertNodePool stores a node pool. Errors: Invalid.
func (in *Intake) UpsertNodePool(ctx context.Context, p *drover.NodePool) (drover.Outcome, error) {
	if p == nil {
		return drover.Outcome{}, drover.Errorf(drover.Invalid, "missing node pool")
	}
	if !poolName().MatchString(p.Name) {
		return drover.Outcome{}, drover.Errorf(drover.Invalid, "invalid name %q. Must be 1 to 128 letters, digits, '-' or '_'", p.Name)
	}
	if len(p.Description) > 256 {
		return drover.Outcome{}, drover.Errorf(drover.Invalid, "description longer than 256")
	}
	if p.NodeIdentityTTL != "" {
		if d, err := time.ParseDuration(p.NodeIdentityTTL); err != nil || d < 0 {
			return drover.Outcome{}, drover.Errorf(drover.Invalid, "NodeIdentityTTL: %q is no duration such as 720h", p.NodeIdentityTTL)
		}
	}
	return in.propose(ctx, &command.UpsertNodePools{Pools: []*drover.NodePool{p}})
}

// DeleteNodePool removes a node pool. Errors: NotFound, Conflict while it has nodes or jobs, Invalid for built-in ones.
func (in *Intake) DeleteNodePool(ctx context.Context, name string) (drover.Outcome, error) {
	return in.propose(ctx, &command.DeleteNodePools{Names: []string{name}})
}

// SetSchedulerConfig stores the scheduler's configuration; with cas only if the stored one's ModifyIndex is c's.
// Errors: Invalid.
func (in *Intake) SetSchedulerConfig(
	ctx context.Context, c drover.SchedulerConfiguration, cas bool,
) (updated bool, o drover.Outcome, err error) {
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
	return updated, drover.Outcome{Index: index}, nil
}

// DeleteEvaluations forgets ended evaluations, which only is allowed while the broker is paused: what waits in it must
// not vanish under it. Errors: Invalid (the broker is not paused, an evaluation has not ended), NotFound.
func (in *Intake) DeleteEvaluations(ctx context.Context, ids []string) (drover.Outcome, error) {
	s := in.deps.Store.Snapshot()
	if cfg := s.SchedulerConfig(); cfg == nil || !cfg.PauseEvalBroker {
		return drover.Outcome{}, drover.Errorf(drover.Invalid, "eval broker is enabled; eval broker must be paused to delete evals")
	}
	for _, id := range ids {
		e := s.Evaluation(id)
		if e == nil {
			return drover.Outcome{}, drover.Errorf(drover.NotFound, "eval not found: %s", id)
		}
		if !e.Terminal() {
			return drover.Outcome{}, drover.Errorf(drover.Invalid, "eval %s is %s: only ended ones can be deleted", id, e.Status)
		}
		for a := range s.AllocationsByEval(id) {
			if !a.Terminal() {
				return drover.Outcome{}, drover.Errorf(drover.Invalid, "eval %s still has the allocation %s", id, a.ID)
			}
		}
	}
	return in.propose(ctx, &command.Reap{Evals: ids})
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
