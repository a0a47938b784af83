package cluster

import (
	"iter"
	"net/http"
	"slices"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/nomad/answer"
	"github.com/drover-project/drover/internal/httpapi/nomad/jobs"
	"github.com/drover-project/drover/internal/tables"
	"github.com/drover-project/drover/secrets"
	"github.com/drover-project/drover/tenancy"
	"github.com/drover-project/drover/volume"
)

// searchLimit is how many matches a context gives.
const searchLimit = 20

// searchable is a context of /v1/search.
type searchable struct {
	name, table string
	ids         func(s answer.Snapshot, c sees, namespace, prefix string) iter.Seq[string]
}

// searchables lists the contexts that have something in them. Tables with an index by prefix use it; the others
// are small and filtered.
func (f *face) searchables() []searchable {
	return []searchable{
		{"allocs", tables.Allocs, func(s answer.Snapshot, c sees, ns, p string) iter.Seq[string] {
			return names(kept(s.Allocations(ns, p), c.allocation), func(a *drover.Allocation) string { return a.ID })
		}},
		{"deployment", tables.Deployments, func(s answer.Snapshot, c sees, ns, p string) iter.Seq[string] {
			return names(kept(s.Deployments(ns, p), c.deployment), func(d *drover.Deployment) string { return d.ID })
		}},
		{"evals", tables.Evals, func(s answer.Snapshot, c sees, ns, p string) iter.Seq[string] {
			return names(kept(s.Evaluations(ns, p), c.evaluation), func(e *drover.Evaluation) string { return e.ID })
		}},
		{"host_volumes", tables.HostVolumes, func(s answer.Snapshot, c sees, ns, p string) iter.Seq[string] {
			return names(kept(s.HostVolumes(ns, p), c.volume), func(v *volume.HostVolume) string { return v.ID })
		}},
		{"jobs", tables.Jobs, func(s answer.Snapshot, c sees, ns, p string) iter.Seq[string] {
			return names(kept(s.Jobs(ns, p), c.job), func(j *drover.Job) string { return j.ID })
		}},
		{"nodes", tables.Nodes, func(s answer.Snapshot, c sees, _, p string) iter.Seq[string] {
			return names(kept(s.Nodes(p), c.node), func(n *drover.Node) string { return n.ID })
		}},
		{"node_pools", tables.NodePools, func(s answer.Snapshot, c sees, _, p string) iter.Seq[string] {
			return prefixed(p, names(kept(s.NodePools(), c.pool), func(n *drover.NodePool) string { return n.Name }))
		}},
		{"namespaces", tables.Namespaces, func(s answer.Snapshot, c sees, _, p string) iter.Seq[string] {
			return prefixed(p, names(kept(s.Namespaces(), c.namespace), func(n *tenancy.Namespace) string { return n.Name }))
		}},
		{"quotas", tables.Quotas, func(s answer.Snapshot, _ sees, _, p string) iter.Seq[string] {
			return names(s.Quotas(p), quotaName)
		}},
		{"scaling_policy", tables.Jobs, func(s answer.Snapshot, c sees, ns, p string) iter.Seq[string] {
			policies := kept(jobs.ScalingPolicies(s, ns), c.scaling)
			return prefixed(p, names(policies, func(p *drover.ScalingPolicy) string { return p.ID }))
		}},
		{"vars", tables.Variables, func(_ answer.Snapshot, c sees, ns, p string) iter.Seq[string] {
			return names(f.variables(c, ns, p), func(v *secrets.VariableMetadata) string { return v.Path })
		}},
	}
}

// variables yields those that the caller may list.
func (f *face) variables(c sees, namespace, prefix string) iter.Seq[*secrets.VariableMetadata] {
	if f.Variables == nil {
		return func(func(*secrets.VariableMetadata) bool) {}
	}
	return slices.Values(f.Variables.List(c.Caller, namespace, prefix))
}

// emptyContexts are known to Nomad's clients; here there is never anything in them.
func emptyContexts() []string {
	return []string{"plugins", "volumes", "recommendations"}
}

// names maps items to their names, one by one: a search stops at its limit without reading the rest.
func names[T any](items iter.Seq[T], name func(T) string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for it := range items {
			if !yield(name(it)) {
				return
			}
		}
	}
}

// prefixed keeps the names that begin with the prefix.
func prefixed(prefix string, items iter.Seq[string]) iter.Seq[string] {
	return func(yield func(string) bool) {
		for s := range items {
			if strings.HasPrefix(s, prefix) && !yield(s) {
				return
			}
		}
	}
}

// searchAnswer has an entry for each context that was searched; a truncated context has more matches than shown.
type searchAnswer[T any] struct {
	Matches     map[string][]T
	Truncations map[string]bool
	answer.Meta
}

// newSearchAnswer makes the maps, so that they are {} rather than null without a match.
func newSearchAnswer[T any](index uint64) searchAnswer[T] {
	return searchAnswer[T]{Matches: map[string][]T{}, Truncations: map[string]bool{}, Meta: answer.NewMeta(index)}
}

// prefixSearch answers PUT /v1/search: what has an id or a name that begins with the text, at most 20 of each context. Contexts of which
// the caller may see nothing are left out, and refused where one is named.
func (f *face) prefixSearch(w http.ResponseWriter, r *http.Request) error {
	var b struct{ Prefix, Context, Namespace string }
	if err := httpapi.DecodeJSON(r, &b); err != nil {
		return err
	}
	namespace := searchNamespace(r, b.Namespace)
	snap, caller := f.State.Snapshot(), sees{httpapi.CallerOf(r.Context())}
	if !caller.searches(b.Context, namespace) {
		return httpapi.ErrDenied
	}
	found := newSearchAnswer[string](0)
	known := b.Context == "" || b.Context == "all"
	for _, c := range f.searchables() {
		if b.Context != "" && b.Context != "all" && b.Context != c.name {
			continue
		}
		known = true
		if !caller.searches(c.name, namespace) {
			continue
		}
		found.Matches[c.name], found.Truncations[c.name] = []string{}, false
		for id := range c.ids(snap, caller, namespace, b.Prefix) {
			if len(found.Matches[c.name]) == searchLimit {
				found.Truncations[c.name] = true
				break
			}
			found.Matches[c.name] = append(found.Matches[c.name], id)
		}
		found.Index = max(found.Index, snap.TableIndex(c.table))
	}
	for _, name := range emptyContexts() {
		if b.Context == name || b.Context == "" || b.Context == "all" {
			known, found.Truncations[name] = true, false
		}
	}
	if !known {
		return drover.Errorf(drover.Invalid, "invalid context %q", b.Context)
	}
	found.Meta = f.MetaOf(found.Index)
	f.SetIndex(w, found.Index)
	return httpapi.WriteJSON(w, r, http.StatusOK, found)
}

// searchNamespace is the query's, else the body's, which Nomad's client fills too.
func searchNamespace(r *http.Request, body string) string {
	if !r.URL.Query().Has("namespace") && body != "" {
		return body
	}
	return answer.Namespace(r)
}
