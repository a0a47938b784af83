package traces

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/nomad/api"
)

// deployment finds one by its identifier.
func (s *shell) deployment(args []string) (*api.Deployment, error) {
	if len(args) != 1 {
		return nil, fmt.Errorf("the command needs a deployment")
	}
	d, _, err := s.api.Deployments().Info(args[0], nil)
	return d, err
}

func (s *shell) deploymentStatus(_ context.Context, args []string) error {
	d, err := s.deployment(args)
	if err != nil {
		return err
	}
	s.say("Status = %s\nDescription = %s", d.Status, d.StatusDescription)
	_, err = s.api.Agent().Self()
	return err
}

func (s *shell) promote(ctx context.Context, args []string) error {
	d, err := s.deployment(args)
	if err != nil {
		return err
	}
	var resp *api.DeploymentUpdateResponse
	if s.flags.group != "" {
		resp, _, err = s.api.Deployments().PromoteGroups(d.ID, []string{s.flags.group}, nil)
	} else {
		resp, _, err = s.api.Deployments().PromoteAll(d.ID, nil)
	}
	if err != nil {
		return err
	}
	return s.monitor(ctx, resp.EvalID)
}

func (s *shell) fail(ctx context.Context, args []string) error {
	d, err := s.deployment(args)
	if err != nil {
		return err
	}
	resp, _, err := s.api.Deployments().Fail(d.ID, nil)
	if err != nil {
		return err
	}
	if resp.RevertedJobVersion != nil {
		s.say("auto-reverted to job version %d", *resp.RevertedJobVersion)
	}
	return s.monitor(ctx, resp.EvalID)
}

func (s *shell) pause(_ context.Context, args []string) error {
	d, err := s.deployment(args)
	if err == nil {
		_, _, err = s.api.Deployments().Pause(d.ID, true, nil)
	}
	return err
}

func (s *shell) resume(ctx context.Context, args []string) error {
	d, err := s.deployment(args)
	if err != nil {
		return err
	}
	resp, _, err := s.api.Deployments().Pause(d.ID, false, nil)
	if err != nil {
		return err
	}
	return s.monitor(ctx, resp.EvalID)
}

// allocation finds one by what its identifier begins with.
func (s *shell) allocation(args []string) (*api.Allocation, error) {
	if len(args) == 0 {
		return nil, fmt.Errorf("the command needs an allocation")
	}
	list, _, err := s.api.Allocations().PrefixList(args[0])
	if err != nil {
		return nil, err
	}
	if len(list) != 1 {
		return nil, fmt.Errorf("%d allocations are called %q", len(list), args[0])
	}
	a, _, err := s.api.Allocations().Info(list[0].ID, in())
	return a, err
}

func (s *shell) allocStop(ctx context.Context, args []string) error {
	a, err := s.allocation(args)
	if err != nil {
		return err
	}
	resp, err := s.api.Allocations().Stop(a, nil)
	if err != nil {
		return err
	}
	return s.monitor(ctx, resp.EvalID)
}

func (s *shell) allocRestart(_ context.Context, args []string) error {
	a, err := s.allocation(args)
	if err != nil {
		return err
	}
	task := s.flags.task
	if len(args) > 1 {
		task = args[1]
	}
	if task != "" && !hasTask(a, task) {
		return fmt.Errorf("could not find task named: %s", task) // Nomad's program says so by itself
	}
	if s.flags.all {
		return s.api.Allocations().RestartAllTasks(a, nil)
	}
	return s.api.Allocations().Restart(a, task, nil)
}

func hasTask(a *api.Allocation, name string) bool {
	for _, t := range a.GetTaskGroup().Tasks {
		if t.Name == name {
			return true
		}
	}
	return false
}

func (s *shell) allocSignal(_ context.Context, args []string) error {
	a, err := s.allocation(args)
	if err != nil {
		return err
	}
	return s.api.Allocations().Signal(a, nil, s.flags.task, s.flags.signal)
}

func (s *shell) allocStatus(_ context.Context, args []string) error {
	a, err := s.allocation(args)
	if err != nil {
		return err
	}
	if _, err := s.api.Allocations().Checks(a.ID, nil); err != nil {
		return err
	}
	if _, err := s.api.Allocations().Stats(a, nil); err != nil {
		return err
	}
	s.say("Client Status = %s\nDesired Status = %s", a.ClientStatus, a.DesiredStatus)
	_, err = s.api.Agent().Self()
	return err
}

// node finds one by what its identifier begins with.
func (s *shell) node(args []string) (*api.Node, error) {
	if len(args) != 1 {
		return nil, fmt.Errorf("the command needs a node")
	}
	list, _, err := s.api.Nodes().PrefixList(args[0])
	if err != nil {
		return nil, err
	}
	if len(list) != 1 {
		return nil, fmt.Errorf("%d nodes are called %q", len(list), args[0])
	}
	n, _, err := s.api.Nodes().Info(list[0].ID, nil)
	return n, err
}

// drain without -detach follows the node's allocations until nothing runs there that has to leave.
func (s *shell) drain(ctx context.Context, args []string) error {
	n, err := s.node(args)
	if err != nil {
		return err
	}
	var spec *api.DrainSpec
	if s.flags.enable {
		spec = &api.DrainSpec{Deadline: time.Hour, IgnoreSystemJobs: s.flags.ignoreSystem}
		switch {
		case s.flags.force:
			spec.Deadline = -1
		case s.flags.deadline != "":
			if spec.Deadline, err = time.ParseDuration(s.flags.deadline); err != nil {
				return fmt.Errorf("-deadline: %w", err)
			}
		}
	}
	resp, err := s.api.Nodes().UpdateDrainOpts(n.ID, &api.DrainOptions{DrainSpec: spec, MarkEligible: !s.flags.keepIneligible}, nil)
	if err != nil || s.flags.detach || !s.flags.enable {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for m := range s.api.Nodes().MonitorDrain(ctx, n.ID, resp.LastIndex, s.flags.ignoreSystem) {
		s.say("%s", m.Message)
		if m.Level == api.MonitorMsgLevelError {
			return fmt.Errorf("following the drain: %s", m.Message)
		}
	}
	return ctx.Err()
}

func (s *shell) eligibility(_ context.Context, args []string) error {
	n, err := s.node(args)
	if err == nil {
		_, err = s.api.Nodes().ToggleEligibility(n.ID, s.flags.enable, nil)
	}
	return err
}

func (s *shell) gc(context.Context, []string) error { return s.api.System().GarbageCollect() }

func (s *shell) reconcile(context.Context, []string) error {
	return s.api.System().ReconcileSummaries()
}

// fill puts identifiers in place of what a person reads from the output of earlier commands.
func (s *shell) fill(args []string, v *view, nodes []string) ([]string, error) {
	var out []string
	for _, a := range args {
		if strings.HasPrefix(a, "{") && strings.HasSuffix(a, "}") {
			id, err := s.identifier(strings.Trim(a, "{}"), v, nodes)
			if err != nil {
				return nil, err
			}
			a = id
		}
		out = append(out, a)
	}
	return out, nil
}

func (s *shell) identifier(text string, v *view, nodes []string) (string, error) {
	var n int
	var version uint64
	var name string
	switch {
	case text == "job":
		return s.job, nil
	case text == "index":
		return fmt.Sprint(s.index), nil
	case text == "child":
		return s.child()
	case scanned(text, "deployment %d", &n):
		return deploymentOf(s.api, s.job, n)
	case scanned(text, "node %d", &n) && n < len(nodes):
		return nodes[n], nil
	case scanned(text, "alloc v%d %s", &version, &name):
		return pick(v.allocs, version, name)
	}
	return "", fmt.Errorf("nothing is called {%s}", text)
}

func scanned(text, format string, to ...any) bool {
	n, err := fmt.Sscanf(text, format, to...)
	return err == nil && n == len(to)
}

// child is the newest of the job's children.
func (s *shell) child() (string, error) {
	list, _, err := s.api.Jobs().PrefixList(s.job + "/")
	if err != nil {
		return "", err
	}
	var newest *api.JobListStub
	for _, j := range list {
		if newest == nil || j.CreateIndex > newest.CreateIndex {
			newest = j
		}
	}
	if newest == nil {
		return "", fmt.Errorf("%s has no children", s.job)
	}
	return newest.ID, nil
}
