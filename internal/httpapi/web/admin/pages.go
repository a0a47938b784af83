package admin

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/web/html"
	"github.com/drover-project/drover/internal/httpapi/web/parts"
)

// Actions are what forms ask for.
type Actions interface {
	// Do asks the API for an action, with a body of JSON unless in is nil. Errors: those of Site.Ask.
	Do(r *http.Request, method, path string, in, out any) error
	// Tell leads to a page, which tells once what an action did: Told is the action's name there.
	Tell(w http.ResponseWriter, r *http.Request, at html.URL, name string)
	Told(r *http.Request) string
}

// Site is the page of which these are part.
type Site interface {
	Actions
	// Ask reads what the API has at a path, as the viewer. Errors: *httpapi.StatusError.
	Ask(r *http.Request, path string, out any) error
	// List reads a page of a list, of the rows that the viewer's address asks for, and where the next page begins. Errors: those of Ask.
	List(r *http.Request, path string, query url.Values, out any) (next string, err error)
	// Show answers with a page, or with what the API said instead.
	Show(w http.ResponseWriter, r *http.Request, title string, body html.Part, err error) error
	// Page answers with a page and a status. The body has the title.
	Page(w http.ResponseWriter, r *http.Request, status int, title string, body html.Part) error
	// Pager leads to the next page of a list, and to the first.
	Pager(r *http.Request, at html.URL, next string) html.Part
	// Failed says what went wrong, and what to do.
	Failed(r *http.Request, err error) html.Part
	// Levels are what the viewer may do; nil if that is not known.
	Levels(r *http.Request) *acl.Levels
}

// Pages serves them.
type Pages struct{ Site }

// maxForm bounds a form, in bytes: a variable has at most 64 KiB, and is sent escaped.
const maxForm = 512 << 10

// Routes are theirs; where they are answered and what they need is the same for all of the page.
func (h *Pages) Routes() []httpapi.Route {
	return []httpapi.Route{
		{Pattern: "GET /ui/servers", Handle: h.servers},
		{Pattern: "GET /ui/doctor", Handle: h.doctor},
		{Pattern: "GET /ui/audit", Handle: h.audit},
		{Pattern: "GET /ui/evaluations", Handle: h.evaluations},
		{Pattern: "GET /ui/evaluations/{evaluation}", Handle: h.evaluation},
		{Pattern: "GET /ui/deployments", Handle: h.deployments},
		{Pattern: "GET /ui/deployments/{deployment}", Handle: h.deployment},
		{Pattern: "GET /ui/services", Handle: h.services},
		{Pattern: "GET /ui/services/{service}", Handle: h.service},
		{Pattern: "GET /ui/volumes", Handle: h.volumes},
		{Pattern: "GET /ui/volumes/{volume}", Handle: h.volume},
		{Pattern: "GET /ui/namespaces", Handle: h.namespaces},
		{Pattern: "GET /ui/namespaces/{namespace}", Handle: h.namespace},
		{Pattern: "GET /ui/variables", Handle: h.variables},
		{Pattern: "GET /ui/variable", Handle: h.variable},
		{Pattern: "GET /ui/variable/edit", Handle: h.variableForm},
		{Pattern: "POST /ui/variable/edit", Handle: h.writeVariable, MaxBody: maxForm},
		{Pattern: "POST /ui/variable/delete", Handle: h.deleteVariable, MaxBody: maxForm},
		{Pattern: "GET /ui/access", Handle: h.tokens},
		{Pattern: "POST /ui/access/tokens", Handle: h.createToken, MaxBody: maxForm},
		{Pattern: "GET /ui/access/tokens/{token}", Handle: h.token},
		{Pattern: "POST /ui/access/tokens/{token}/delete", Handle: h.deleteToken, MaxBody: maxForm},
		{Pattern: "GET /ui/access/policies", Handle: h.policies},
		{Pattern: "GET /ui/access/policies/{policy}", Handle: h.policy},
		{Pattern: "GET /ui/access/roles", Handle: h.roles},
		{Pattern: "GET /ui/access/methods", Handle: h.methods},
		{Pattern: "GET /ui/access/rules", Handle: h.rules},
	}
}

// api is a path of the API: api("deployment", id) is /v1/deployment/….
func api(path ...string) string { return html.Path(append([]string{"v1"}, path...)...).String() }

// inNamespace is the path with a namespace.
func inNamespace(path, namespace string) string {
	return path + "?" + url.Values{"namespace": {cmp.Or(namespace, drover.DefaultNamespace)}}.Encode()
}

// everywhere asks a list for all namespaces that the viewer may see, or for the one that the address names.
func everywhere(r *http.Request) url.Values {
	return url.Values{"namespace": {cmp.Or(r.URL.Query().Get("namespace"), "*")}}
}

// at is a page's address with the filters of the viewer's.
func at(r *http.Request, page html.URL, filters ...string) html.URL {
	for _, name := range filters {
		if v := r.URL.Query().Get(name); v != "" {
			page = page.With(name, v)
		}
	}
	return page
}

// field is a field of a form, with its label.
func field(name, label, value string, more ...html.Part) html.Part {
	return html.El("div", html.El("label", html.Attr("for", name), html.Text(label)),
		html.El("input", append([]html.Part{
			html.ID(name), html.Attr("name", name), html.Attr("value", value), html.Attr("autocomplete", "off"),
			html.Attr("spellcheck", "false"),
		}, more...)...))
}

// filters is a form of what a list is narrowed by, by pairs of a parameter and its label.
func filters(r *http.Request, pairs ...string) html.Part {
	var fields []html.Part
	for i := 0; i < len(pairs); i += 2 {
		fields = append(fields, field(pairs[i], pairs[i+1], r.URL.Query().Get(pairs[i])))
	}
	return html.El("form", html.Class("row search"), html.Group(fields...), html.El("button", html.Text(Text.Find)))
}

// confirm asks whether to do what was asked for, and names what it ends.
func confirm(action, back html.URL, question, what, button string, fields ...html.Part) html.Part {
	before, after, _ := strings.Cut(question, "%s")
	return html.El("form", html.Class("panel"), html.Attr("method", "post"), html.Action(action),
		html.El("h1", html.Text(Text.Sure)),
		html.El("p", html.Text(before), html.El("strong", html.Name(what)), html.Text(after)),
		parts.Hidden("sure", "1"), html.Group(fields...),
		html.El("div", html.Class("row"), html.El("button", html.Class("primary"), html.Text(button)),
			html.El("a", html.Href(back), html.Text(Text.Cancel))))
}

// notice is a message with a tone: ok, warn or idle.
func notice(tone, title, more string) html.Part {
	return html.El("div", html.Class("notice "+tone), html.El("strong", html.Text(title)), html.If(more != "", html.El("p", html.Text(more))))
}

// done tells what the action did that led to the page.
func (h *Pages) done(r *http.Request) html.Part {
	words, known := Text.Done[h.Told(r)]
	return html.If(known, html.El("p", html.Class("notice ok"), html.Attr("role", "status"), html.Text(words)))
}

// form reads a form. Errors: Invalid.
func form(r *http.Request) error {
	if err := r.ParseForm(); err != nil {
		return drover.Errorf(drover.Invalid, "%s: %w", Text.BadForm, err)
	}
	return nil
}

// jobLink leads to a job.
func jobLink(id, namespace string) html.Part {
	if id == "" {
		return html.Text(parts.None)
	}
	return parts.Link(html.Path("ui", "jobs", id+"@"+namespace), id)
}

// idLink leads to an object by its id.
func idLink(kind, id string) html.Part {
	if id == "" {
		return html.Text(parts.None)
	}
	return parts.Link(html.Path("ui", kind, id), parts.ShortID(id))
}

// most is how many rows a list shows that the API does not page.
const most = 200

// cut says that a list is longer than what is shown of it.
func cut(n int) html.Part {
	return html.If(n > most, html.El("p", html.Class("muted"), html.Text(fmt.Sprintf(Text.FirstOf, most, n))))
}
