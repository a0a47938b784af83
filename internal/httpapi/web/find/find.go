package find

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/web/html"
	"github.com/drover-project/drover/internal/httpapi/web/parts"
	"github.com/drover-project/drover/secrets"
	"github.com/drover-project/drover/volume"
)

// Site is the page of which this is part.
type Site interface {
	// Do asks the API as the viewer, with a body of JSON unless in is nil. Errors: *httpapi.StatusError.
	Do(r *http.Request, method, path string, in, out any) error
	Page(w http.ResponseWriter, r *http.Request, status int, title string, body html.Part) error
	// Failed says what went wrong, and what to do.
	Failed(r *http.Request, err error) html.Part
	// Levels are what the viewer may do with the parts of the cluster; nil if that is not known.
	Levels(r *http.Request) *acl.Levels
}

// Pages serves it.
type Pages struct{ Site }

// Routes are theirs; where they are answered and what they need is the same for all of the page.
func (h *Pages) Routes() []httpapi.Route {
	return []httpapi.Route{{Pattern: "GET /ui/search", Handle: h.search}}
}

// Bounds of a search.
const (
	least   = 2   // letters: one is in everything
	longest = 256 // bytes
	most    = 8   // of a kind
	leastID = 30  // bytes of an execution's id
)

// hit is something that was found.
type hit struct {
	to         html.URL
	name, more string
}

// kind is what was found of a kind of things.
type kind struct {
	name string
	hits []hit
	more bool // there is more than is shown
}

// search finds what the words are in. What the viewer may not see is not looked for; what fails is said.
func (h *Pages) search(w http.ResponseWriter, r *http.Request) error {
	words := strings.TrimSpace(r.URL.Query().Get("q"))
	if utf8.RuneCountInString(words) < least || len(words) > longest {
		about := html.If(words != "", html.El("p", html.Class("muted"), html.Text(fmt.Sprintf(Text.Length, least, longest))))
		return h.Page(w, r, http.StatusOK, Text.Search, html.Group(html.El("h1", html.Text(Text.Search)), form(words), about))
	}
	kinds, failures := h.find(r, words)
	content := []html.Part{html.El("h1", html.Text(Text.Search)), form(words)}
	for _, err := range failures {
		content = append(content, h.Failed(r, err))
	}
	found := 0
	for _, k := range kinds {
		if len(k.hits) == 0 {
			continue
		}
		found += len(k.hits)
		items := make([]html.Part, 0, len(k.hits)+1)
		for _, one := range k.hits {
			items = append(items, html.El("li", html.El("a", html.Class("hit"), html.Href(one.to), html.Attr("data-kind", k.name),
				html.Name(one.name)),
				html.If(one.more != "", html.Group(html.Text(" "), html.El("span", html.Class("muted"), html.Name(one.more))))))
		}
		if k.more {
			items = append(items, html.El("li", html.Class("muted"), html.Text(Text.More)))
		}
		content = append(content, html.El("section", html.El("h2", html.Text(k.name)), html.El("ul", html.Class("hits"), html.Group(items...))))
	}
	if found == 0 && len(failures) == 0 {
		content = append(content, html.El("p", html.Class("muted"), html.Text(Text.Nothing)))
	}
	return h.Page(w, r, http.StatusOK, Text.Search, html.Group(content...))
}

// form asks for other words.
func form(words string) html.Part {
	return html.El("form", html.Class("row search"), html.Action(html.Path("ui", "search")),
		html.El("label", html.Class("away"), html.Attr("for", "words"), html.Text(Text.Words)),
		html.El("input", html.ID("words"), html.Attr("type", "search"), html.Attr("name", "q"), html.Attr("value", words),
			html.Attr("autocomplete", "off"), html.Attr("spellcheck", "false")),
		html.El("button", html.Text(Text.Find)))
}

// find asks the API's searches and lists.
func (h *Pages) find(r *http.Request, words string) (kinds []kind, failures []error) {
	levels := h.Levels(r)
	if levels == nil {
		levels = &acl.Levels{Jobs: true, Services: true, Runners: true, Volumes: true, Variables: true} // the API says what not
	}
	all := levels.Management
	for _, part := range []struct {
		may  bool
		find func(*http.Request, string) ([]kind, error)
	}{
		{true, h.named},
		{len(words) >= 4 && isID(words), h.ids},
		{all || levels.Runners, h.environments},
		{all || levels.Runners, h.runners},
		{(all || levels.Runners) && len(words) >= leastID, h.execution},
		{all || levels.Services, h.services},
		{all || levels.Volumes, h.volumes},
		{all || levels.Variables, h.variables},
	} {
		if !part.may {
			continue
		}
		found, err := part.find(r, words)
		switch status := httpapi.Status(err); {
		case err == nil:
			kinds = append(kinds, found...)
		case status == http.StatusForbidden || status == http.StatusNotFound || status == http.StatusUnauthorized && len(kinds) > 0:
			// it is not for the viewer, or not there
		default:
			failures = append(failures, err)
			if status == http.StatusUnauthorized {
				return kinds, failures
			}
		}
	}
	return kinds, failures
}

// isID reports whether the words may be the beginning of an id.
func isID(words string) bool {
	digits := strings.ReplaceAll(words, "-", "")
	_, err := hex.DecodeString(digits + strings.Repeat("0", len(digits)%2))
	return err == nil && len(words) <= 64
}

// match is one of Nomad's fuzzy search.
type match struct {
	ID    string
	Scope []string
}

func (m match) scope(i int) string {
	if i < len(m.Scope) {
		return m.Scope[i]
	}
	return ""
}

// named asks for what has the words in its name.
func (h *Pages) named(r *http.Request, words string) ([]kind, error) {
	var said struct {
		Matches     map[string][]match
		Truncations map[string]bool
	}
	body := map[string]string{"Text": words, "Context": "all", "Namespace": "*"}
	if err := h.Do(r, http.MethodPost, "/v1/search/fuzzy?namespace=%2A", body, &said); err != nil {
		return nil, err
	}
	job := func(m match) html.URL { return html.Path("ui", "jobs", m.scope(1)+"@"+m.scope(0)) }
	var out []kind
	for _, of := range []struct {
		context, name string
		to            func(match) html.URL
		more          func(match) string
	}{
		{"jobs", Text.Jobs, job, func(m match) string { return m.scope(0) }},
		{"groups", Text.Groups, job, func(m match) string { return m.scope(1) }},
		{"tasks", Text.Tasks, job, func(m match) string { return m.scope(1) }},
		{"images", Text.Images, job, func(m match) string { return m.scope(1) }},
		{
			"allocs", Text.Allocations,
			func(m match) html.URL { return html.Path("ui", "allocations", m.scope(1)) },
			func(m match) string { return parts.ShortID(m.scope(1)) },
		},
		{
			"nodes", Text.Nodes,
			func(m match) html.URL { return html.Path("ui", "clients", m.scope(0)) },
			func(m match) string { return parts.ShortID(m.scope(0)) },
		},
		{
			"namespaces", Text.Namespaces,
			func(m match) html.URL { return html.Path("ui", "namespaces", m.ID) },
			func(match) string { return "" },
		},
	} {
		k := kind{name: of.name, more: said.Truncations[of.context]}
		for _, m := range said.Matches[of.context] {
			k.add(hit{of.to(m), m.ID, of.more(m)})
		}
		out = append(out, k)
	}
	return out, nil
}

// add adds a hit while there is room.
func (k *kind) add(one hit) {
	if len(k.hits) == most {
		k.more = true
		return
	}
	k.hits = append(k.hits, one)
}

// ids asks for what has an id that begins so.
func (h *Pages) ids(r *http.Request, words string) ([]kind, error) {
	var said struct {
		Matches     map[string][]string
		Truncations map[string]bool
	}
	body := map[string]string{"Prefix": strings.ToLower(words), "Context": "all", "Namespace": "*"}
	if err := h.Do(r, http.MethodPost, "/v1/search?namespace=%2A", body, &said); err != nil {
		return nil, err
	}
	var out []kind
	for _, of := range []struct{ context, name, path string }{
		{"allocs", Text.Allocations, "allocations"},
		{"nodes", Text.Nodes, "clients"},
		{"evals", Text.Evaluations, "evaluations"},
		{"deployment", Text.Deployments, "deployments"},
	} {
		k := kind{name: of.name, more: said.Truncations[of.context]}
		for _, id := range said.Matches[of.context] {
			k.add(hit{html.Path("ui", of.path, id), id, ""})
		}
		out = append(out, k)
	}
	return out, nil
}

// contains reports whether one of the names has the words in it, without regard to case.
func contains(words string, names ...string) bool {
	for _, name := range names {
		if strings.Contains(strings.ToLower(name), strings.ToLower(words)) {
			return true
		}
	}
	return false
}

func (h *Pages) environments(r *http.Request, words string) ([]kind, error) {
	var all []execution.Environment
	err := h.Do(r, http.MethodGet, "/v1/environments?namespace=%2A", nil, &all)
	k := kind{name: Text.Environments}
	for i := range all {
		if key := all[i].Key(); contains(words, key, all[i].Image) {
			k.add(hit{html.Path("ui", "environments", key), key, all[i].Image})
		}
	}
	return []kind{k}, err
}

// runners looks for ids and labels of claimed runners, such as student=42.
func (h *Pages) runners(r *http.Request, words string) ([]kind, error) {
	var all []execution.Runner
	err := h.Do(r, http.MethodGet, "/v1/runners?namespace=%2A", nil, &all)
	k := kind{name: Text.Runners}
	for i := range all {
		one, label := &all[i], ""
		if one.ClaimedAt.IsZero() {
			continue
		}
		for name, value := range one.Labels {
			if text := name + "=" + value; contains(words, text) && (label == "" || text < label) {
				label = text
			}
		}
		if label != "" || contains(words, one.ID) {
			k.add(hit{html.Path("ui", "runners", one.ID), one.ID, label})
		}
	}
	return []kind{k}, err
}

// execution looks for one by its whole id: there is no list of all.
func (h *Pages) execution(r *http.Request, words string) ([]kind, error) {
	k := kind{name: Text.Executions}
	var x execution.Execution
	err := h.Do(r, http.MethodGet, html.Path("v1", "execution", words).String(), nil, &x)
	if err == nil && x.ID != "" {
		k.add(hit{html.Path("ui", "executions", x.ID), x.ID, strings.Join(x.Spec.Argv, " ")})
	}
	if status := httpapi.Status(err); err != nil && status < http.StatusInternalServerError {
		return nil, nil // it is none
	}
	return []kind{k}, err
}

func (h *Pages) services(r *http.Request, words string) ([]kind, error) {
	var all []struct {
		Namespace string
		Services  []struct{ ServiceName string }
	}
	err := h.Do(r, http.MethodGet, "/v1/services?namespace=%2A", nil, &all)
	k := kind{name: Text.Services}
	for _, in := range all {
		for _, s := range in.Services {
			if contains(words, s.ServiceName) {
				k.add(hit{html.Path("ui", "services", s.ServiceName).With("namespace", in.Namespace), s.ServiceName, in.Namespace})
			}
		}
	}
	return []kind{k}, err
}

func (h *Pages) volumes(r *http.Request, words string) ([]kind, error) {
	var all []volume.HostVolumeStub
	err := h.Do(r, http.MethodGet, "/v1/volumes?type=host&namespace=%2A", nil, &all)
	k := kind{name: Text.Volumes}
	for i := range all {
		if v := &all[i]; contains(words, v.Name, v.ID) {
			k.add(hit{html.Path("ui", "volumes", v.ID).With("namespace", v.Namespace), cmp.Or(v.Name, v.ID), v.Namespace})
		}
	}
	return []kind{k}, err
}

// variables looks for paths, of those that the viewer may list. Values are not looked at.
func (h *Pages) variables(r *http.Request, words string) ([]kind, error) {
	var all []secrets.VariableMetadata
	query := url.Values{"namespace": {"*"}}
	err := h.Do(r, http.MethodGet, "/v1/vars?"+query.Encode(), nil, &all)
	k := kind{name: Text.Variables}
	for i := range all {
		if v := &all[i]; contains(words, v.Path) {
			k.add(hit{html.Path("ui", "variable").With("namespace", v.Namespace).With("path", v.Path), v.Path, v.Namespace})
		}
	}
	return []kind{k}, err
}
