package intake

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/admission"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/rights"
)

// maxVerdicts is how many verdicts a refusal, or a warning, tells.
const maxVerdicts = 16

// compiledRules are the admission rules as they were last read.
type compiledRules struct {
	mu  sync.Mutex
	set admission.Set // guarded by mu
}

// UpsertAdmissionRule stores an admission rule. Errors: Invalid with the place of what is wrong, Conflict for more than there may be.
func (in *Intake) UpsertAdmissionRule(ctx context.Context, r *drover.AdmissionRule) (drover.Outcome, error) {
	if r == nil {
		return drover.Outcome{}, drover.Errorf(drover.Invalid, "missing admission rule")
	}
	if err := admission.Complete(r); err != nil {
		return drover.Outcome{}, err
	}
	return in.propose(ctx, &command.UpsertAdmissionRules{Rules: []*drover.AdmissionRule{r}})
}

// DeleteAdmissionRule removes an admission rule. Errors: NotFound.
func (in *Intake) DeleteAdmissionRule(ctx context.Context, name string) (drover.Outcome, error) {
	return in.propose(ctx, &command.DeleteAdmissionRules{Names: []string{name}})
}

// TestAdmission says which admission rules, of every level, are against the job if who asks registers it. Errors: Invalid.
func (in *Intake) TestAdmission(ctx context.Context, job *drover.Job) ([]drover.AdmissionVerdict, error) {
	if job == nil {
		return nil, drover.Errorf(drover.Invalid, "missing job to test")
	}
	return in.judge(ctx, in.canonical(job)), nil
}

// rules returns the admission rules; those that did not change are not read again.
func (in *Intake) rules(s *store.Snapshot) admission.Set {
	list := slices.Collect(s.AdmissionRules())
	if len(list) == 0 {
		return nil
	}
	c := &in.admission
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.set.Is(list) {
		c.set = admission.Compile(list, c.set)
	}
	return c.set
}

// judge asks the admission rules about a canonical job, and about who sent the request.
func (in *Intake) judge(ctx context.Context, j *drover.Job) []drover.AdmissionVerdict {
	s := in.deps.Store.Snapshot()
	rules := in.rules(s)
	if len(rules) == 0 {
		return nil
	}
	return rules.Judge(j, submitter(s, rights.CallerOf(ctx)), func(j *drover.Job, r *drover.VolumeRequest) []admission.Volume {
		return behind(s, j, r)
	})
}

// submitter is who asks, with the policies that the token has itself and those of its roles; nil if that is not known.
func submitter(s *store.Snapshot, c *rights.Caller) *admission.Submitter {
	if c == nil {
		return nil
	}
	by := &admission.Submitter{Type: c.Token.Type, Name: c.Token.Name, Policies: slices.Clone(c.Token.Policies)}
	for _, link := range c.Token.Roles {
		if link == nil {
			continue
		}
		role := s.ACLRole(link.ID)
		if role == nil { // it is gone, and gives nothing
			continue
		}
		by.Roles = append(by.Roles, role.Name)
		for _, p := range role.Policies {
			if !slices.Contains(by.Policies, p.Name) {
				by.Policies = append(by.Policies, p.Name)
			}
		}
	}
	return by
}

// behind finds the host volumes that a job's request may get: those of nodes' configurations, and those of the job's namespace, in its
// node pool.
func behind(s *store.Snapshot, j *drover.Job, r *drover.VolumeRequest) (out []admission.Volume) {
	within := func(pool string) bool { return j.NodePool == drover.AllNodePool || pool == j.NodePool }
	named := func(name string) bool { // the scheduler takes the same
		if r.PerAlloc {
			return strings.HasPrefix(name, r.Source+"[")
		}
		return name == r.Source
	}
	for n := range s.Nodes("") {
		if !within(n.NodePool) {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(n.HostVolumes)) {
			if v := n.HostVolumes[name]; v != nil && v.ID == "" && named(name) {
				out = append(out, admission.Volume{Path: v.Path})
			}
		}
	}
	for v := range s.HostVolumes(j.Namespace, "") {
		if named(v.Name) && within(v.NodePool) {
			out = append(out, admission.Volume{Path: v.HostPath, Plugin: v.PluginID})
		}
	}
	return out
}

// admitted says why the admission rules refuse the job, and of what they warn. Where it is only planned nothing is counted, and there is a
// warning of what a dry run finds, too. Errors: Invalid.
func (in *Intake) admitted(ctx context.Context, j *drover.Job, planned bool) (warnings []string, err error) {
	var errs []error
	told := map[string]bool{}
	for _, v := range in.judge(ctx, j) {
		if !planned && in.deps.Judged != nil && !told[v.Rule] {
			told[v.Rule] = true
			in.deps.Judged(v.Rule, v.Level)
		}
		text := fmt.Sprintf("job.group[%s].task[%s]: admission rule %q", v.Group, v.Task, v.Rule)
		if v.Message != "" {
			text += ": " + v.Message
		}
		text += " (" + v.Reason + ")"
		switch {
		case v.Level == drover.AdmissionWarn:
			warnings = append(warnings, text)
		case v.Level == drover.AdmissionDryRun && planned:
			warnings = append(warnings, "dry run: "+text)
		case v.Level != drover.AdmissionDryRun: // a level that this program does not know refuses, too
			errs = append(errs, errors.New(text))
		}
	}
	if n := len(warnings) - maxVerdicts; n > 0 {
		warnings = append(warnings[:maxVerdicts], fmt.Sprintf("and %d more", n))
	}
	if n := len(errs) - maxVerdicts; n > 0 {
		errs = append(errs[:maxVerdicts], fmt.Errorf("and %d more", n))
	}
	if len(errs) > 0 {
		return warnings, drover.Errorf(drover.Invalid, "job validation: %w", errors.Join(errs...))
	}
	return warnings, nil
}
