package cluster

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/nomad/answer"
	"github.com/drover-project/drover/volume"
)

// fuzzyMatch names what matched; Scope holds the ids of what it is in.
type fuzzyMatch struct {
	ID    string
	Scope []string `json:",omitempty"`
}

// fuzzy collects matches by context, ordered by how early the text appears.
type fuzzy struct {
	text  string
	sees  sees
	found map[string][]scored
}

// scored is a match and at which byte of the name the text begins; 0 sorts first.
type scored struct {
	fuzzyMatch
	at int
}

// try adds the name if it contains the text, without regard to case. Scope leads from the namespace down to what
// the name belongs to.
func (z *fuzzy) try(context, name string, scope ...string) {
	if at := strings.Index(strings.ToLower(name), z.text); at >= 0 {
		z.found[context] = append(z.found[context], scored{fuzzyMatch{name, scope}, at})
	}
}

// fuzzySearch answers PUT /v1/search/fuzzy: what has the text anywhere in its name, the earliest first.
func (f *face) fuzzySearch(w http.ResponseWriter, r *http.Request) error {
	var b struct{ Text, Context, Namespace string }
	if err := httpapi.DecodeJSON(r, &b); err != nil {
		return err
	}
	if len(b.Text) < 2 {
		return drover.Errorf(drover.Invalid, "fuzzy search query must be at least 2 characters, got %d", len(b.Text))
	}
	snap := f.State.Snapshot()
	z := &fuzzy{text: strings.ToLower(b.Text), sees: sees{httpapi.CallerOf(r.Context())}, found: map[string][]scored{}}
	namespace := searchNamespace(r, b.Namespace)
	if !z.sees.searches(b.Context, namespace) {
		return httpapi.ErrDenied
	}
	all := b.Context == "" || b.Context == "all"
	switch known := []string{
		"jobs", "nodes", "allocs", "namespaces", "node_pools", "quotas", "evals", "deployment", "host_volumes", "scaling_policy", "vars",
	}; {
	case all, slices.Contains(known, b.Context), slices.Contains(emptyContexts(), b.Context):
	default:
		return drover.Errorf(drover.Invalid, "invalid context %q", b.Context)
	}
	z.names(snap, namespace, b.Context, all)
	z.ids(f.searchables(), snap, namespace, b.Context, all)
	if all || b.Context == "vars" {
		for v := range f.variables(z.sees, namespace, "") {
			z.try("vars", v.Path, v.Namespace, v.Path)
		}
	}
	if (all || b.Context == "quotas") && z.sees.searches("quotas", namespace) {
		for q := range snap.Quotas("") {
			z.try("quotas", q.Name)
		}
	}
	f.SetIndex(w, snap.Index())
	found := z.answer(snap.Index())
	found.Meta = f.MetaOf(snap.Index())
	return httpapi.WriteJSON(w, r, http.StatusOK, found)
}

// names looks at what has a name of its own, in one context or in all.
func (z *fuzzy) names(snap answer.Snapshot, namespace, context string, all bool) {
	if all || context == "jobs" {
		for j := range kept(snap.Jobs(namespace, ""), z.sees.job) {
			z.job(j)
		}
	}
	if all || context == "nodes" {
		for n := range kept(snap.Nodes(""), z.sees.node) {
			z.try("nodes", n.Name, n.ID)
			z.try("classes", n.NodeClass, n.ID)
		}
	}
	if all || context == "allocs" {
		for a := range kept(snap.Allocations(namespace, ""), z.sees.allocation) {
			z.try("allocs", a.Name, a.Namespace, a.ID)
		}
	}
	if (all || context == "host_volumes") && z.sees.searches("host_volumes", namespace) {
		for v := range kept(snap.HostVolumes(namespace, ""), z.sees.volume) {
			z.volume(v)
		}
	}
	if all || context == "namespaces" {
		for n := range kept(snap.Namespaces(), z.sees.namespace) {
			z.try("namespaces", n.Name)
		}
	}
	if all || context == "node_pools" {
		for p := range kept(snap.NodePools(), z.sees.pool) {
			z.try("node_pools", p.Name)
		}
	}
}

// volume looks at a volume's name, and at the beginning of its id, by which Nomad finds it.
func (z *fuzzy) volume(v *volume.HostVolume) {
	at := strings.Index(strings.ToLower(v.Name), z.text)
	if strings.HasPrefix(v.ID, z.text) {
		at = 0
	}
	if at >= 0 {
		z.found["host_volumes"] = append(z.found["host_volumes"], scored{fuzzyMatch{v.ID, []string{v.Namespace, v.Name}}, at})
	}
}

// job looks at a job and at what it is made of.
func (z *fuzzy) job(j *drover.Job) {
	z.try("jobs", j.Name, j.Namespace, j.ID)
	for _, g := range j.TaskGroups {
		z.try("groups", g.Name, j.Namespace, j.ID)
		for _, s := range g.Services {
			z.try("services", s.Name, j.Namespace, j.ID, g.Name)
		}
		for _, t := range g.Tasks {
			z.try("tasks", t.Name, j.Namespace, j.ID, g.Name)
			for _, s := range t.Services {
				z.try("services", s.Name, j.Namespace, j.ID, g.Name, t.Name)
			}
			if image, ok := t.Config["image"].(string); ok {
				z.try("images", image, j.Namespace, j.ID, g.Name, t.Name)
			}
			if command, ok := t.Config["command"].(string); ok {
				z.try("commands", command, j.Namespace, j.ID, g.Name, t.Name)
			}
		}
	}
}

// ids looks for what has no name by the beginning of its id.
func (z *fuzzy) ids(in []searchable, s answer.Snapshot, namespace, context string, all bool) {
	for _, c := range in {
		if c.name != "evals" && c.name != "deployment" && c.name != "scaling_policy" || !all && c.name != context ||
			!z.sees.searches(c.name, namespace) {
			continue
		}
		for id := range c.ids(s, z.sees, namespace, z.text) {
			z.found[c.name] = append(z.found[c.name], scored{fuzzyMatch{ID: id}, 0})
			// One more than the limit tells that the answer is cut.
			if len(z.found[c.name]) > searchLimit {
				break
			}
		}
	}
}

// answer sorts the matches of each context by position, then by name, and cuts them to searchLimit. Contexts
// without a match are left out, unlike those of prefixSearch.
func (z *fuzzy) answer(index uint64) searchAnswer[fuzzyMatch] {
	found := newSearchAnswer[fuzzyMatch](index)
	for context, list := range z.found {
		slices.SortStableFunc(list, func(a, b scored) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.ID, b.ID)) })
		found.Truncations[context] = len(list) > searchLimit
		for _, m := range list[:min(len(list), searchLimit)] {
			found.Matches[context] = append(found.Matches[context], m.fuzzyMatch)
		}
	}
	return found
}
