package nomadbackend

import (
	"context"
	"encoding/json"
	"strings"
	"sync"

	"github.com/hashicorp/nomad/api"
	"golang.org/x/sync/errgroup"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/deepcopy"
	"github.com/drover-project/drover/internal/exec/environment"
	"github.com/drover-project/drover/internal/exec/runner"
)

// atOnce bounds the requests that are under way together.
const atOnce = 16

// RegisterJob implements runner.Intake: it keeps the environment on the cluster.
func (b *Backend) RegisterJob(ctx context.Context, job *drover.Job) error {
	e, err := environment.FromJob(job)
	if err != nil {
		return err
	}
	if e.Namespace != "" {
		return drover.Errorf(drover.NotImplemented, "namespace %q: runners on a Nomad cluster are in the namespace default alone", e.Namespace)
	}
	nomad, err := b.environmentJob(e)
	if err != nil {
		return err
	}
	if _, _, err := b.client.Jobs().Register(nomad, b.write(ctx)); err != nil {
		return b.reached(err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.setEnvLocked(e)
}

// setEnvLocked stores an environment, new or replaced. The demand of its pool is kept, because only ClaimRunners
// changes it. The failures of the earlier one are forgotten: the new specification may be without fault.
func (b *Backend) setEnvLocked(e execution.Environment) error {
	gen, err := generation(e, b.cfg.Environments)
	if err != nil {
		return err
	}
	job, err := environment.ToJob(e, b.cfg.Environments)
	if err != nil {
		return err
	}
	demand := 0
	if old := b.envs[e.ID]; old != nil {
		demand = old.job.TaskGroups[0].Pool.Demand
	}
	job.TaskGroups[0].Pool.Demand = demand
	job.ModifyIndex = b.index + 1
	b.envs[e.ID] = &env{job: job, environment: e, generation: gen}
	b.outdateLocked(b.envs[e.ID])
	b.emitLocked(drover.TopicJob, job.ID)
	b.dirty.Send()
	return nil
}

// DeregisterJob implements runner.Intake: it removes the environment and all its runners.
func (b *Backend) DeregisterJob(ctx context.Context, namespace, jobID string) error {
	id, _ := environment.KeyOf(drover.NamespacedID{Namespace: namespace, ID: jobID})
	if _, _, err := b.client.Jobs().Deregister(envPrefix+id, true, b.write(ctx)); err != nil && !notFound(err) {
		return b.reached(err)
	}
	b.mu.Lock()
	b.forgetEnvLocked(id)
	b.mu.Unlock()
	b.dirty.Send() // what is left of its runners is removed there
	return nil
}

// forgetEnvLocked forgets an environment. Its runners stay known until keep has removed their jobs.
func (b *Backend) forgetEnvLocked(id string) {
	if e := b.envs[id]; e != nil {
		delete(b.envs, id)
		b.emitLocked(drover.TopicJob, e.job.ID)
	}
}

// ClaimRunners implements runner.Intake. A claim counts here at once, and again after a restart when Nomad has it.
func (b *Backend) ClaimRunners(ctx context.Context, claims []runner.AllocClaim, demands []runner.Demand) ([]error, error) {
	results := make([]error, len(claims))
	var calls errgroup.Group
	calls.SetLimit(atOnce)
	var mu sync.Mutex
	var away error
	for i, c := range claims {
		b.mu.Lock()
		r := b.byAllocLocked(c.AllocID)
		switch {
		case r == nil || r.ending:
			results[i] = drover.Errorf(drover.Conflict, "runner %s has ended", c.AllocID)
		case r.claim != nil && r.claim.RunnerID != c.Claim.RunnerID:
			results[i] = drover.Errorf(drover.Conflict, "runner %s was claimed as %s", c.AllocID, r.claim.RunnerID)
		default:
			again := r.claim != nil && r.recorded && r.claim.IdleTimeout == c.Claim.IdleTimeout
			r.claim = &c.Claim
			if again {
				break
			}
			calls.Go(func() error { // ends with its request
				err := b.recordClaim(ctx, r, c.Claim)
				mu.Lock()
				defer mu.Unlock()
				if drover.CodeOf(err) == drover.Conflict {
					results[i] = err
				} else if err != nil {
					away = err
				}
				return nil
			})
		}
		b.mu.Unlock()
	}
	_ = calls.Wait() // they keep their errors
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, d := range demands {
		b.setDemandLocked(d)
	}
	b.dirty.Send()
	return results, away
}

// setDemandLocked sets how many runners are wanted beyond the pool's size. Snapshots share the job, hence the copy.
// Demand is not written to Nomad: after a restart nobody waits any more.
func (b *Backend) setDemandLocked(d runner.Demand) {
	e := b.envs[d.Environment]
	if e == nil {
		return
	}
	job := deepcopy.Of(e.job)
	job.TaskGroups[0].Pool.Demand = d.Runners
	job.ModifyIndex = b.index + 1
	e.job = job
	b.emitLocked(drover.TopicJob, job.ID)
}

// recordClaim writes the claim into the note of the runner's job. Errors: Conflict when it is not ours any more.
func (b *Backend) recordClaim(ctx context.Context, r *runnerJob, claim drover.Claim) error {
	text, err := json.Marshal(claim)
	if err != nil {
		return err
	}
	b.mu.Lock()
	job, index := &api.Job{}, r.index
	err = convert(r.job, job)
	b.mu.Unlock()
	if err != nil {
		return err
	}
	job.LookupTaskGroup(noteGroup).Meta[metaClaim] = string(text)
	res, _, err := b.client.Jobs().EnforceRegister(job, index, b.write(ctx))
	if err != nil {
		if strings.Contains(err.Error(), "Enforcing job modify index") {
			return drover.Errorf(drover.Conflict, "the job of runner %s was changed or removed: %w", r.allocID, err)
		}
		return b.reached(err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	r.job, r.index, r.recorded = job, res.JobModifyIndex, true
	if a := b.allocs[r.allocID]; a != nil {
		claimed := *a
		claimed.Claim = r.claim
		b.allocs[a.ID] = &claimed
		b.emitLocked(drover.TopicAllocation, a.ID)
	}
	return nil
}

// byAllocLocked finds a runner by its allocation; nil without one.
func (b *Backend) byAllocLocked(allocID string) *runnerJob {
	for _, r := range b.runners {
		if r.allocID == allocID {
			return r
		}
	}
	return nil
}

// ReleaseRunners implements runner.Intake.
func (b *Backend) ReleaseRunners(ctx context.Context, r runner.Releases) error {
	var calls errgroup.Group
	calls.SetLimit(atOnce)
	for _, allocID := range r.AllocIDs {
		b.mu.Lock()
		known := b.byAllocLocked(allocID)
		b.mu.Unlock()
		if known != nil {
			calls.Go(func() error { return b.remove(ctx, known) }) // ends with its request
		}
	}
	return calls.Wait()
}

// remove purges the runner's job. One that is gone already is removed too.
func (b *Backend) remove(ctx context.Context, r *runnerJob) error {
	if _, _, err := b.client.Jobs().Deregister(r.id, true, b.write(ctx)); err != nil && !notFound(err) {
		return b.reached(err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.goneLocked(r)
	return nil
}

// notFound reports whether the job is not there: some versions of Nomad say so to who purges a job with 404, some with 500.
func notFound(err error) bool {
	return err != nil &&
		(strings.Contains(err.Error(), "response code: 404") || strings.Contains(strings.ToLower(err.Error()), "job not found"))
}

// reached gives an error of the cluster's a code.
func (b *Backend) reached(err error) error {
	code := drover.Unavailable
	switch text := err.Error(); {
	case strings.Contains(text, "response code: 400"):
		code = drover.Invalid
	case strings.Contains(text, "response code: 403"):
		code = drover.Forbidden
	}
	return drover.Errorf(code, "the Nomad cluster: %w", err)
}
