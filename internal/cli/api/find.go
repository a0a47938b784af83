package api

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/drover-project/drover"
)

// Blocking makes q a blocking query, and returns it: the agent answers when something is newer than index, or after a
// minute. An index of 0 is answered at once.
func Blocking(q url.Values, index uint64) url.Values {
	q.Set("wait", "60s")
	q.Set("index", strconv.FormatUint(index, 10))
	return q
}

// Query makes a query of names and values in turn. Pairs with an empty value are left out, as a flag that was not
// given.
func Query(pairs ...string) url.Values {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	return q
}

// Pick finds the one of list whose id is or begins with what a person wrote; about describes a candidate. An exact id
// wins over longer ones. Errors: NotFound; Invalid, with ten candidates at most, when several begin so.
func Pick[T any](kind, prefix string, list []T, id func(T) string, about func(T) string) (T, error) {
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

// prefixed reads a list, of which the agent returns the things whose ids begin with prefix.
func prefixed[T any](ctx context.Context, c *Client, path, prefix string) (list []T, err error) {
	q := c.Anywhere()
	q.Set("prefix", prefix)
	_, err = c.Get(ctx, path, q, &list)
	return list, err
}

// Allocation finds an allocation by the beginning of its id.
func (c *Client) Allocation(ctx context.Context, prefix string) (*drover.Allocation, error) {
	list, err := prefixed[*drover.AllocationListStub](ctx, c, "/v1/allocations", prefix)
	if err != nil {
		return nil, err
	}
	stub, err := Pick("allocation", prefix, list, func(a *drover.AllocationListStub) string { return a.ID },
		func(a *drover.AllocationListStub) string { return a.Name + "  " + a.ClientStatus })
	if err != nil {
		return nil, err
	}
	var a drover.Allocation
	_, err = c.Get(ctx, "/v1/allocation/"+stub.ID, url.Values{"namespace": {stub.Namespace}}, &a)
	return &a, err
}

// Node finds a node by the beginning of its id, or by its whole name. Ids come first; of several nodes with the name
// it is the last one. Errors: NotFound; Invalid when several begin so; the API's.
func (c *Client) Node(ctx context.Context, prefix string) (*drover.Node, error) {
	var list []*drover.NodeListStub
	if _, err := c.Get(ctx, "/v1/nodes", nil, &list); err != nil {
		return nil, err
	}
	stub, err := Pick("node", prefix, list, func(n *drover.NodeListStub) string { return n.ID },
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
	_, err = c.Get(ctx, "/v1/node/"+stub.ID, nil, &n)
	return &n, err
}

// LocalNode returns the id of the agent's own node. If that agent runs servers only, it is the cluster's only node.
// Errors: Invalid if there are several; the API's.
func (c *Client) LocalNode(ctx context.Context) (string, error) {
	var self struct{ Stats map[string]map[string]string }
	if _, err := c.Get(ctx, "/v1/agent/self", nil, &self); err != nil {
		return "", err
	}
	if id := self.Stats["client"]["node_id"]; id != "" {
		return id, nil
	}
	var list []*drover.NodeListStub
	if _, err := c.Get(ctx, "/v1/nodes", nil, &list); err != nil {
		return "", err
	}
	if len(list) == 1 {
		return list[0].ID, nil
	}
	return "", drover.Errorf(drover.Invalid, "the agent at %s is no node, and there are %d: name one", c.Address, len(list))
}

// Evaluation finds an evaluation by the beginning of its id.
func (c *Client) Evaluation(ctx context.Context, prefix string) (*drover.Evaluation, error) {
	list, err := prefixed[*drover.Evaluation](ctx, c, "/v1/evaluations", prefix)
	if err != nil {
		return nil, err
	}
	return Pick("evaluation", prefix, list, func(e *drover.Evaluation) string { return e.ID },
		func(e *drover.Evaluation) string { return e.JobID + "  " + e.Status })
}

// Deployment finds a deployment by the beginning of its id.
func (c *Client) Deployment(ctx context.Context, prefix string) (*drover.Deployment, error) {
	list, err := prefixed[*drover.Deployment](ctx, c, "/v1/deployments", prefix)
	if err != nil {
		return nil, err
	}
	return Pick("deployment", prefix, list, func(d *drover.Deployment) string { return d.ID },
		func(d *drover.Deployment) string { return d.JobID + "  " + d.Status })
}

// JobPath is the path of a job, whose id may hold slashes.
func JobPath(id, suffix string) string { return "/v1/job/" + url.PathEscape(id) + suffix }

// InNamespace is the query that names a job's namespace.
func InNamespace(namespace string) url.Values { return url.Values{"namespace": {namespace}} }

// Job finds a job by its id or the beginning of it, in the chosen namespace, since ids are unique in one only.
// Errors: NotFound; Invalid when several begin so; the API's.
func (c *Client) Job(ctx context.Context, prefix string) (*drover.Job, error) {
	var list []*drover.JobListStub
	q := url.Values{"prefix": {prefix}}
	if _, err := c.Get(ctx, "/v1/jobs", q, &list); err != nil {
		return nil, err
	}
	stub, err := Pick("job", prefix, list, func(j *drover.JobListStub) string { return j.ID },
		func(j *drover.JobListStub) string { return j.Namespace + "  " + j.Status })
	if err != nil {
		if drover.CodeOf(err) == drover.NotFound && c.Namespace == "" {
			return nil, drover.Errorf(drover.NotFound, "%w in namespace %q; -namespace chooses another", err, drover.DefaultNamespace)
		}
		return nil, err
	}
	var j drover.Job
	_, err = c.Get(ctx, JobPath(stub.ID, ""), InNamespace(stub.Namespace), &j)
	return &j, err
}
