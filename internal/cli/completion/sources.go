package completion

import (
	"cmp"
	"context"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
)

// asked returns what may stand for a word that begins with prefix, behind the words before it.
type asked func(ctx context.Context, app *term.App, before []string, prefix string) ([]cobra.Completion, error)

// known says what may stand where a command's line of usage has one of these words. NAME is one of what the family is about.
var known = map[string]asked{
	"JOB": jobs, "ALLOC": listed("/v1/allocations"), "NODE": listed("/v1/nodes"), "EVAL": listed("/v1/evaluations"),
	"DEPLOYMENT": listed("/v1/deployments"), "POLICY": listed("/v1/scaling/policies"), "SERVICE": services, "ENV": environments,
	"RUNNER": runners, "TASK": tasks, "GROUP": groups, "ID": anything,
	"NAME of namespace": listed("/v1/namespaces"), "NAME of quota": listed("/v1/quotas"), "NAME of env": environments,
	"NAME of pool": listed("/v1/node/pools"), "POOL of pool": listed("/v1/node/pools"), "NAME of policy": listed("/v1/acl/policies"),
	"ACCESSOR": listed("/v1/acl/tokens"), "PATH of var": variables,
}

// flagged says what may be the value of a flag, whatever the command.
var flagged = map[string]asked{
	"job": jobs, "node-id": listed("/v1/nodes"), "namespace": listed("/v1/namespaces"), "allocation": listed("/v1/allocations"),
	"node-pool": listed("/v1/node/pools"),
}

// thing is what lists of the API have in common, of which each has a part.
type thing struct{ ID, Name, AccessorID, JobID, ClientStatus, Status, Type, Description string }

// listed are the things of one of Nomad's lists, with short ids.
func listed(path string) asked {
	return func(ctx context.Context, app *term.App, _ []string, prefix string) (out []cobra.Completion, err error) {
		c, err := app.Nomad()
		if err != nil {
			return nil, err
		}
		q := url.Values{}
		if path != "/v1/nodes" { // which may also be named
			q.Set("prefix", prefix)
		}
		if path == "/v1/allocations" || path == "/v1/evaluations" || path == "/v1/deployments" {
			q = c.Anywhere()
			q.Set("prefix", prefix)
			q.Set("per_page", "200")
		}
		var list []thing
		if _, err := c.Get(ctx, path, q, &list); err != nil {
			return nil, err
		}
		for _, t := range list {
			id := cmp.Or(t.ID, t.AccessorID, t.Name)
			if len(prefix) <= len(term.ShortID(id)) {
				id = term.ShortID(id)
			}
			about := strings.Join(strings.Fields(strings.Join(
				[]string{cmp.Or(t.Name, t.JobID), cmp.Or(t.ClientStatus, t.Status, t.Type), t.Description}, " ")), " ")
			if t.Name == id {
				about = t.Description
			}
			out = append(out, offer(id, about))
			if path == "/v1/nodes" && t.Name != "" {
				out = append(out, offer(t.Name, "node "+id))
			}
		}
		return out, nil
	}
}

// offer is a completion with what is said about it. A line of the shell's protocol has no control characters.
func offer(word, about string) cobra.Completion {
	return cobra.CompletionWithDesc(term.OneLine(word), term.OneLine(about))
}

// jobs are those of the chosen namespace.
func jobs(ctx context.Context, app *term.App, _ []string, prefix string) (out []cobra.Completion, err error) {
	c, err := app.Nomad()
	if err != nil {
		return nil, err
	}
	var list []*drover.JobListStub
	if _, err := c.Get(ctx, "/v1/jobs", url.Values{"prefix": {prefix}, "per_page": {"200"}}, &list); err != nil {
		return nil, err
	}
	for _, j := range list {
		out = append(out, offer(j.ID, j.Type+" "+j.Status))
	}
	return out, nil
}

// groups are those of the job that is the first word.
func groups(ctx context.Context, app *term.App, before []string, _ string) (out []cobra.Completion, err error) {
	c, err := app.Nomad()
	if err != nil {
		return nil, err
	}
	j, err := c.Job(ctx, before[0])
	if err != nil {
		return nil, err
	}
	for _, g := range j.TaskGroups {
		out = append(out, offer(g.Name, "group"))
	}
	return out, nil
}

// tasks are those of the allocation that is the first word.
func tasks(ctx context.Context, app *term.App, before []string, _ string) (out []cobra.Completion, err error) {
	c, err := app.Nomad()
	if err != nil {
		return nil, err
	}
	a, err := c.Allocation(ctx, before[0])
	if err != nil {
		return nil, err
	}
	if a.Job != nil && a.Job.Group(a.TaskGroup) != nil {
		for _, t := range a.Job.Group(a.TaskGroup).Tasks {
			out = append(out, offer(t.Name, t.Driver))
		}
	}
	return out, nil
}

// services are those that are served in the chosen namespace.
func services(ctx context.Context, app *term.App, _ []string, prefix string) (out []cobra.Completion, err error) {
	c, err := app.Nomad()
	if err != nil {
		return nil, err
	}
	var list []struct {
		Services []struct{ ServiceName string }
	}
	if _, err := c.Get(ctx, "/v1/services", url.Values{"prefix": {prefix}}, &list); err != nil {
		return nil, err
	}
	for _, n := range list {
		for _, s := range n.Services {
			out = append(out, offer(s.ServiceName, "service"))
		}
	}
	return out, nil
}

// variables are paths that may be listed.
func variables(ctx context.Context, app *term.App, _ []string, prefix string) (out []cobra.Completion, err error) {
	c, err := app.Nomad()
	if err != nil {
		return nil, err
	}
	var list []struct{ Path string }
	if _, err := c.Get(ctx, "/v1/vars", api.Query("prefix", prefix, "per_page", "200"), &list); err != nil {
		return nil, err
	}
	for _, v := range list {
		out = append(out, offer(v.Path, "variable"))
	}
	return out, nil
}

// anything is what a search finds.
func anything(ctx context.Context, app *term.App, _ []string, prefix string) (out []cobra.Completion, err error) {
	c, err := app.Nomad()
	if err != nil {
		return nil, err
	}
	var r struct{ Matches map[string][]string }
	if err := c.Put(ctx, "/v1/search", c.Anywhere(), map[string]string{"Prefix": prefix, "Context": "all"}, &r); err != nil {
		return nil, err
	}
	for _, kind := range []string{"jobs", "allocs", "nodes", "evals", "deployment"} {
		for _, id := range r.Matches[kind] {
			if len(prefix) <= len(term.ShortID(id)) {
				id = term.ShortID(id)
			}
			out = append(out, offer(id, strings.TrimSuffix(kind, "s")))
		}
	}
	return out, nil
}

// environments are those of the chosen namespace.
func environments(ctx context.Context, app *term.App, _ []string, _ string) (out []cobra.Completion, err error) {
	c, err := app.Native()
	if err != nil {
		return nil, err
	}
	list, err := c.Environments(ctx)
	for _, e := range list {
		out = append(out, offer(e.ID, "environment"))
	}
	return out, err
}

// runners are those that are claimed.
func runners(ctx context.Context, app *term.App, _ []string, _ string) (out []cobra.Completion, err error) {
	c, err := app.Native()
	if err != nil {
		return nil, err
	}
	list, err := c.Runners(ctx, "")
	for _, r := range list {
		out = append(out, offer(r.ID, r.Environment))
	}
	return out, err
}
