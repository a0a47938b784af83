package cli

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/drover-project/drover"
)

// pick finds the one among list whose id is or begins with what a person wrote. Errors: NotFound, Invalid with the
// candidates when there are several.
func pick[T any](kind, prefix string, list []T, id func(T) string, about func(T) string) (T, error) {
	var found []T
	for _, v := range list {
		if id(v) == prefix {
			return v, nil
		}
		if strings.HasPrefix(id(v), prefix) {
			found = append(found, v)
		}
	}
	var none T
	switch len(found) {
	case 0:
		return none, drover.Errorf(drover.NotFound, "there is no %s %q", kind, prefix)
	case 1:
		return found[0], nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d %ss begin with %q:", len(found), kind, prefix)
	for i, v := range found {
		if i == 10 {
			fmt.Fprintf(&b, "\n  … and %d more", len(found)-i)
			break
		}
		fmt.Fprintf(&b, "\n  %s  %s", id(v), about(v))
	}
	return none, drover.Errorf(drover.Invalid, "%s", b.String())
}

// prefixed asks for a list by prefix.
func prefixed[T any](ctx context.Context, c *api, path, prefix string) (list []T, err error) {
	q := c.anywhere()
	q.Set("prefix", prefix)
	_, err = c.get(ctx, path, q, &list)
	return list, err
}

// alloc finds an allocation by the beginning of its id.
func (c *api) alloc(ctx context.Context, prefix string) (*drover.Allocation, error) {
	list, err := prefixed[*drover.AllocationListStub](ctx, c, "/v1/allocations", prefix)
	if err != nil {
		return nil, err
	}
	stub, err := pick("allocation", prefix, list, func(a *drover.AllocationListStub) string { return a.ID },
		func(a *drover.AllocationListStub) string { return a.Name + "  " + a.ClientStatus })
	if err != nil {
		return nil, err
	}
	var a drover.Allocation
	_, err = c.get(ctx, "/v1/allocation/"+stub.ID, url.Values{"namespace": {stub.Namespace}}, &a)
	return &a, err
}

// node finds a node by the beginning of its id, or by its name.
func (c *api) node(ctx context.Context, prefix string) (*drover.Node, error) {
	var list []*drover.NodeListStub
	if _, err := c.get(ctx, "/v1/nodes", nil, &list); err != nil {
		return nil, err
	}
	stub, err := pick("node", prefix, list, func(n *drover.NodeListStub) string { return n.ID },
		func(n *drover.NodeListStub) string { return n.Name + "  " + n.Status })
	if drover.CodeOf(err) == drover.NotFound {
		for _, n := range list {
			if n.Name == prefix {
				stub, err = n, nil
			}
		}
	}
	if err != nil {
		return nil, err
	}
	var n drover.Node
	_, err = c.get(ctx, "/v1/node/"+stub.ID, nil, &n)
	return &n, err
}

// localNode is the id of the agent's own node, or of the only one there is.
func (c *api) localNode(ctx context.Context) (string, error) {
	var self struct{ Stats map[string]map[string]string }
	if _, err := c.get(ctx, "/v1/agent/self", nil, &self); err != nil {
		return "", err
	}
	if id := self.Stats["client"]["node_id"]; id != "" {
		return id, nil
	}
	var list []*drover.NodeListStub
	if _, err := c.get(ctx, "/v1/nodes", nil, &list); err != nil {
		return "", err
	}
	if len(list) == 1 {
		return list[0].ID, nil
	}
	return "", drover.Errorf(drover.Invalid, "the agent at %s is no node, and there are %d: name one", c.address, len(list))
}

// eval finds an evaluation by the beginning of its id.
func (c *api) eval(ctx context.Context, prefix string) (*drover.Evaluation, error) {
	list, err := prefixed[*drover.Evaluation](ctx, c, "/v1/evaluations", prefix)
	if err != nil {
		return nil, err
	}
	return pick("evaluation", prefix, list, func(e *drover.Evaluation) string { return e.ID },
		func(e *drover.Evaluation) string { return e.JobID + "  " + e.Status })
}

// deployment finds a deployment by the beginning of its id.
func (c *api) deployment(ctx context.Context, prefix string) (*drover.Deployment, error) {
	list, err := prefixed[*drover.Deployment](ctx, c, "/v1/deployments", prefix)
	if err != nil {
		return nil, err
	}
	return pick("deployment", prefix, list, func(d *drover.Deployment) string { return d.ID },
		func(d *drover.Deployment) string { return d.JobID + "  " + d.Status })
}

// jobPath is the path of a job, whose id may hold slashes.
func jobPath(id, suffix string) string { return "/v1/job/" + url.PathEscape(id) + suffix }

// inNamespace is the query that names a job's namespace.
func inNamespace(namespace string) url.Values { return url.Values{"namespace": {namespace}} }

// job finds a job by its id or the beginning of it.
func (c *api) job(ctx context.Context, prefix string) (*drover.Job, error) {
	var list []*drover.JobListStub
	q := url.Values{"prefix": {prefix}}
	if _, err := c.get(ctx, "/v1/jobs", q, &list); err != nil {
		return nil, err
	}
	stub, err := pick("job", prefix, list, func(j *drover.JobListStub) string { return j.ID },
		func(j *drover.JobListStub) string { return j.Namespace + "  " + j.Status })
	if err != nil {
		if drover.CodeOf(err) == drover.NotFound && c.namespace == "" {
			return nil, drover.Errorf(drover.NotFound, "%w in namespace %q; -namespace chooses another", err, drover.DefaultNamespace)
		}
		return nil, err
	}
	var j drover.Job
	_, err = c.get(ctx, jobPath(stub.ID, ""), inNamespace(stub.Namespace), &j)
	return &j, err
}
