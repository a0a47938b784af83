package traces

import (
	"context"
	"fmt"
	"strconv"

	"github.com/hashicorp/nomad/api"
)

func (s *shell) jobRun(ctx context.Context, args []string) error {
	job, sent, err := s.file(args)
	if err != nil {
		return err
	}
	opts := &api.RegisterOptions{Submission: sent}
	if text := s.flags.checkIndex; text != "" {
		opts.EnforceIndex = true
		if opts.ModifyIndex, err = strconv.ParseUint(text, 10, 64); err != nil {
			return fmt.Errorf("-check-index: %w", err)
		}
	}
	resp, _, err := s.api.Jobs().RegisterOpts(job, opts, nil)
	if err != nil {
		return err
	}
	if resp.Warnings != "" {
		s.say("warnings: %s", resp.Warnings)
	}
	if job.IsPeriodic() || job.IsParameterized() {
		s.flags.detach = true // there is nothing to follow
	}
	if err := s.monitor(ctx, resp.EvalID); err != nil {
		return err
	}
	_, err = s.api.Agent().Self()
	return err
}

func (s *shell) jobValidate(_ context.Context, args []string) error {
	job, _, err := s.file(args)
	if err != nil {
		return err
	}
	resp, _, err := s.api.Jobs().Validate(job, nil)
	if err != nil {
		return err
	}
	if resp.Error != "" {
		return fmt.Errorf("%s", resp.Error)
	}
	return nil
}

// jobPlan ends with 1 if allocations would be made or end, and with 255 if there is no plan.
func (s *shell) jobPlan(_ context.Context, args []string) error {
	job, _, err := s.file(args)
	if err != nil {
		s.say("%v", err)
		return exitError(255)
	}
	resp, _, err := s.api.Jobs().PlanOpts(job, &api.PlanOptions{Diff: true}, nil)
	if err != nil {
		s.say("%v", err)
		return exitError(255)
	}
	s.index = resp.JobModifyIndex
	s.say("diff: %s", resp.Diff.Type)
	for name, m := range resp.FailedTGAllocs {
		s.say("fails to place %s: %d nodes evaluated", name, m.NodesEvaluated)
	}
	changes := uint64(0)
	for name, u := range resp.Annotations.DesiredTGUpdates {
		s.say("%s: place=%d stop=%d in-place=%d destructive=%d canary=%d ignore=%d", name, u.Place, u.Stop, u.InPlaceUpdate,
			u.DestructiveUpdate, u.Canary, u.Ignore)
		changes += u.Place + u.Stop + u.DestructiveUpdate + u.Canary + u.Migrate
	}
	if changes > 0 {
		return exitError(1)
	}
	return nil
}

func (s *shell) jobStatus(_ context.Context, args []string) error {
	id, err := s.asked(args)
	if err != nil {
		return err
	}
	job, _, err := s.api.Jobs().Info(id, in())
	if err != nil {
		return err
	}
	s.say("Type = %s\nStatus = %s", *job.Type, *job.Status)
	if !job.IsPeriodic() && !job.IsParameterized() {
		allocs, _, err := s.api.Jobs().Allocations(id, false, in())
		if err != nil {
			return err
		}
		if _, _, err := s.api.Jobs().Evaluations(id, in()); err != nil {
			return err
		}
		d, _, err := s.api.Jobs().LatestDeployment(id, in())
		if err != nil {
			return err
		}
		if d != nil {
			s.say("Latest Deployment = %s: %s", d.Status, d.StatusDescription)
		}
		for _, a := range allocs {
			s.say("%s %s v%d %s %s", a.ID[:8], a.TaskGroup, a.JobVersion, a.DesiredStatus, a.ClientStatus)
		}
	}
	if _, _, err := s.api.Jobs().Summary(id, in()); err != nil {
		return err
	}
	_, err = s.api.Agent().Self()
	return err
}

func (s *shell) jobStop(ctx context.Context, args []string) error {
	id, err := s.asked(args)
	if err != nil {
		return err
	}
	if _, _, err := s.api.Jobs().Info(id, in()); err != nil {
		return err
	}
	eval, _, err := s.api.Jobs().DeregisterOpts(id, &api.DeregisterOptions{Purge: s.flags.purge}, to())
	if err != nil {
		return err
	}
	return s.monitor(ctx, eval)
}

func (s *shell) jobPromote(ctx context.Context, args []string) error {
	id, err := s.asked(args)
	if err != nil {
		return err
	}
	d, _, err := s.api.Jobs().LatestDeployment(id, in())
	if err != nil {
		return err
	}
	if d == nil {
		return fmt.Errorf("job %s has no deployment", id)
	}
	var resp *api.DeploymentUpdateResponse
	if s.flags.group != "" {
		resp, _, err = s.api.Deployments().PromoteGroups(d.ID, []string{s.flags.group}, to())
	} else {
		resp, _, err = s.api.Deployments().PromoteAll(d.ID, to())
	}
	if err != nil {
		return err
	}
	return s.monitor(ctx, resp.EvalID)
}

func (s *shell) jobScale(ctx context.Context, args []string) error {
	id, err := s.asked(args)
	if err != nil {
		return err
	}
	found, _, err := s.api.Jobs().ScaleStatus(id, in())
	if err != nil {
		return err
	}
	var group, count string
	switch {
	case len(args) == 3:
		group, count = args[1], args[2]
	case len(found.TaskGroups) == 1:
		for group = range found.TaskGroups { // the only one
			count = args[1]
		}
	default:
		return fmt.Errorf("the job has %d groups: name one", len(found.TaskGroups))
	}
	n, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	resp, _, err := s.api.Jobs().Scale(id, group, &n, "submitted using the Nomad CLI", false, nil, to())
	if err != nil {
		return err
	}
	if _, _, err := s.api.Jobs().Info(id, in()); err != nil {
		return err
	}
	return s.monitor(ctx, resp.EvalID)
}

func (s *shell) jobRevert(ctx context.Context, args []string) error {
	id, err := s.asked(args)
	if err != nil {
		return err
	}
	version, err := strconv.ParseUint(args[1], 10, 64)
	if err != nil { // a tag
		tagged, _, err := s.api.Jobs().VersionByTag(id, args[1], in())
		if err != nil {
			return err
		}
		version = *tagged.Version
	}
	resp, _, err := s.api.Jobs().Revert(id, version, nil, to(), "", "")
	if err != nil {
		return err
	}
	return s.monitor(ctx, resp.EvalID)
}

func (s *shell) jobEval(ctx context.Context, args []string) error {
	id, err := s.asked(args)
	if err != nil {
		return err
	}
	eval, _, err := s.api.Jobs().EvaluateWithOpts(id, api.EvalOptions{ForceReschedule: s.flags.forceReschedule}, to())
	if err != nil {
		return err
	}
	return s.monitor(ctx, eval)
}

func (s *shell) jobDispatch(ctx context.Context, args []string) error {
	list, _, err := s.api.Jobs().List(&api.QueryOptions{
		Prefix: args[0], PerPage: 20, Filter: `ParentID == "" and ParameterizedJob is not nil`,
	})
	if err != nil {
		return err
	}
	if len(list) != 1 {
		return fmt.Errorf("%d parameterized jobs are called %q", len(list), args[0])
	}
	opts := &api.DispatchOptions{JobID: list[0].ID, Meta: s.flags.meta, IdPrefixTemplate: s.flags.prefix}
	if len(args) > 1 {
		opts.Payload = []byte(s.files[args[1]])
	}
	w := to()
	w.IdempotencyToken = s.flags.token
	resp, _, err := s.api.Jobs().DispatchOpts(opts, w)
	if err != nil {
		return err
	}
	s.say("Dispatched Job ID = %s", resp.DispatchedJobID)
	return s.monitor(ctx, resp.EvalID)
}

func (s *shell) periodicForce(ctx context.Context, args []string) error {
	list, _, err := s.api.Jobs().List(&api.QueryOptions{Prefix: args[0], PerPage: 20, Filter: "Periodic is not nil"})
	if err != nil {
		return err
	}
	found := ""
	for _, j := range list {
		if j.ID == args[0] {
			found = j.ID
		}
	}
	if found == "" {
		return fmt.Errorf("no periodic job is called %q", args[0])
	}
	eval, _, err := s.api.Jobs().PeriodicForce(found, to())
	if err != nil {
		return err
	}
	return s.monitor(ctx, eval)
}

func (s *shell) jobHistory(_ context.Context, args []string) error {
	id, err := s.asked(args)
	if err != nil {
		return err
	}
	list, _, _, err := s.api.Jobs().Versions(id, s.flags.verbose, in())
	for _, j := range list {
		s.say("Version = %d Stable = %t", *j.Version, is(j.Stable))
	}
	return err
}

func (s *shell) jobInspect(_ context.Context, args []string) error {
	id, err := s.asked(args)
	if err == nil {
		_, _, err = s.api.Jobs().Info(id, in())
	}
	return err
}

func (s *shell) jobAllocs(_ context.Context, args []string) error {
	id, err := s.asked(args)
	if err != nil {
		return err
	}
	if _, _, err := s.api.Jobs().Info(id, in()); err != nil {
		return err
	}
	_, _, err = s.api.Jobs().Allocations(id, false, in())
	return err
}

func (s *shell) jobDeployments(_ context.Context, args []string) error {
	id, err := s.asked(args)
	if err == nil {
		_, _, err = s.api.Jobs().Deployments(id, false, in())
	}
	return err
}

func (s *shell) tagApply(_ context.Context, args []string) error {
	id, err := s.asked(args)
	if err != nil {
		return err
	}
	job, _, err := s.api.Jobs().Info(id, in())
	if err != nil {
		return err
	}
	_, err = s.api.Jobs().TagVersion(id, *job.Version, s.flags.name, "", nil)
	return err
}

func (s *shell) tagUnset(_ context.Context, args []string) error {
	id, err := s.asked(args)
	if err == nil {
		_, err = s.api.Jobs().UntagVersion(id, s.flags.name, nil)
	}
	return err
}
