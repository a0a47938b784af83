package traces

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/hashicorp/nomad/api"
)

// view is what the API tells about a job and those that belong to it: its children, and JOB-high beside JOB.
type view struct {
	have   sections
	allocs []*api.AllocationListStub // of the job itself
}

// look asks for all of it.
func look(c *api.Client, job string) (*view, error) {
	v := &view{have: sections{}}
	list, _, err := c.Jobs().PrefixList(job)
	if err != nil {
		return nil, err
	}
	ids := []string{job}
	for _, j := range list {
		if strings.HasPrefix(j.ID, job+"-") || strings.HasPrefix(j.ID, job+"/") {
			ids = append(ids, j.ID)
		}
	}
	slices.Sort(ids)
	for _, id := range ids {
		if err := v.job(c, job, id); err != nil {
			return nil, fmt.Errorf("job %s: %w", id, err)
		}
	}
	return v, nil
}

// label names a job that is not the one of the history: its children, or by what its name has more.
func label(job, id string) string {
	switch {
	case id == job:
		return ""
	case strings.HasPrefix(id, job+"/"):
		return "child "
	}
	return strings.TrimPrefix(id, job) + " "
}

func (v *view) job(c *api.Client, job, id string) error {
	l := label(job, id)
	info, _, err := c.Jobs().Info(id, nil)
	absent := api.UnexpectedResponseError{}
	switch {
	case errors.As(err, &absent) && absent.StatusCode() == http.StatusNotFound:
		if id == job {
			v.have.add("job", "absent", 1)
		}
		return nil
	case err != nil:
		return err
	}
	v.have.add("job", fmt.Sprintf("%s%s %s v%d stop=%t stable=%t", l, *info.Type, *info.Status, *info.Version, is(info.Stop), is(info.Stable)),
		1)
	if id == job {
		versions, _, _, err := c.Jobs().Versions(id, false, nil)
		if err != nil {
			return err
		}
		for _, j := range versions {
			v.have.add("versions", fmt.Sprintf("v%d stable=%t", *j.Version, is(j.Stable)), 1)
		}
	}
	for _, part := range []func(*api.Client, string, string) error{v.allocations, v.deployments, v.summary, v.evaluations} {
		if err := part(c, id, l); err != nil {
			return err
		}
	}
	return nil
}

func (v *view) allocations(c *api.Client, id, l string) error {
	allocs, _, err := c.Jobs().Allocations(id, false, nil)
	if err != nil {
		return err
	}
	if l == "" {
		v.allocs = allocs
	}
	for _, a := range allocs {
		state := fmt.Sprintf("%sv%d %s %s/%s%s", l, a.JobVersion, a.TaskGroup, a.DesiredStatus, a.ClientStatus, health(a.DeploymentStatus))
		if alive(a) {
			v.have.add("live", state, 1)
		} else {
			v.have.add(loose, "ended "+state, 1)
			if a.DesiredStatus != api.AllocDesiredStatusRun {
				v.have["why"] = once(v.have["why"], fmt.Sprintf("%s %s %s: %s", l, a.DesiredStatus, a.ClientStatus, a.DesiredDescription))
			}
		}
		if a.PreemptedByAllocation != "" {
			v.have.add("live", l+"preempted "+a.TaskGroup, 1)
		}
		for name, t := range a.TaskStates {
			v.have["tasks"] = once(v.have["tasks"], fmt.Sprintf("%s%s/%s %s: %s failed=%t", l, a.TaskGroup, name, a.ClientStatus, t.State, t.Failed))
			var types []string
			for _, e := range t.Events {
				types = append(types, e.Type)
			}
			v.have["events"] = once(v.have["events"], fmt.Sprintf("%s%s/%s %s/%s: %s failed=%t restarts=%d %s", l, a.TaskGroup, name,
				a.DesiredStatus, a.ClientStatus, t.State, t.Failed, t.Restarts, strings.Join(types, ",")))
		}
	}
	return nil
}

func alive(a *api.AllocationListStub) bool {
	return a.ClientStatus == api.AllocClientStatusPending || a.ClientStatus == api.AllocClientStatusRunning
}

func health(s *api.AllocDeploymentStatus) string {
	if s == nil {
		return ""
	}
	text := ""
	if s.Canary {
		text = " canary"
	}
	if s.Healthy != nil {
		text += fmt.Sprintf(" healthy=%t", *s.Healthy)
	}
	return text
}

// once notes a line that is there, however often.
func once(lines map[string]int, line string) map[string]int {
	if lines == nil {
		lines = map[string]int{}
	}
	lines[line] = 1
	return lines
}

// deployments are told oldest first. Those of several jobs carry no names; of their loose counts the last job's stand.
func (v *view) deployments(c *api.Client, id, _ string) error {
	list, _, err := c.Jobs().Deployments(id, false, nil)
	if err != nil {
		return err
	}
	for i, d := range oldestFirst(list) {
		for group, s := range d.TaskGroups {
			v.have.add("deployments", fmt.Sprintf("#%d v%d %s (%s) %s: total=%d canaries=%d promoted=%t healthy=%d",
				i, d.JobVersion, d.Status, d.StatusDescription, group, s.DesiredTotal, s.DesiredCanaries, s.Promoted, s.HealthyAllocs), 1)
			of := fmt.Sprintf("deployment #%d v%d %s ", i, d.JobVersion, group)
			v.set(of+"placed", s.PlacedAllocs)
			v.set(of+"placed canaries", len(s.PlacedCanaries))
			v.set(of+"unhealthy", s.UnhealthyAllocs)
		}
	}
	return nil
}

func oldestFirst(list []*api.Deployment) []*api.Deployment {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b *api.Deployment) int { return int(a.CreateIndex) - int(b.CreateIndex) })
	return list
}

func (v *view) set(line string, n int) {
	if v.have[loose] == nil {
		v.have[loose] = map[string]int{}
	}
	delete(v.have[loose], line)
	if n > 0 {
		v.have[loose][line] = n
	}
}

func (v *view) summary(c *api.Client, id, l string) error {
	s, _, err := c.Jobs().Summary(id, nil)
	if err != nil {
		return err
	}
	for group, g := range s.Summary {
		v.have.add("summary", fmt.Sprintf("%s%s queued=%d running=%d starting=%d lost=%d unknown=%d", l, group, g.Queued, g.Running, g.Starting,
			g.Lost, g.Unknown), 1)
		if g.Complete > 0 {
			v.have.add(loose, fmt.Sprintf("%ssummary %s complete", l, group), g.Complete)
		}
		if g.Failed > 0 {
			v.have.add(loose, fmt.Sprintf("%ssummary %s failed", l, group), g.Failed)
		}
	}
	if ch := s.Children; ch.Sum() > 0 {
		v.have.add("summary", fmt.Sprintf("%schildren pending=%d running=%d dead=%d", l, ch.Pending, ch.Running, ch.Dead), 1)
	}
	return nil
}

func (v *view) evaluations(c *api.Client, id, l string) error {
	list, _, err := c.Jobs().Evaluations(id, nil)
	if err != nil {
		return err
	}
	for _, e := range list {
		switch e.Status {
		case "blocked":
			v.have.add("blocked", l+"blocked evaluation", 1)
		case "pending":
			v.have["evals"] = once(v.have["evals"], l+"pending "+e.TriggeredBy)
		default:
			v.have["evals"] = once(v.have["evals"], l+e.TriggeredBy)
		}
	}
	return nil
}

func is(b *bool) bool { return b != nil && *b }
