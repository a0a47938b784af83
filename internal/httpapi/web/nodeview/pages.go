package nodeview

import (
	"net/http"

	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/web/html"
)

// Site is the page of which these are part.
type Site interface {
	// Ask reads what the API has at a path, as the viewer. Errors: *httpapi.StatusError.
	Ask(r *http.Request, path string, out any) error
	// Send asks the API for a change. Errors: those of Ask.
	Send(r *http.Request, method, path string, body any) error
	// Pass answers with what the API has at a path, as it stands, and with its errors.
	Pass(w http.ResponseWriter, r *http.Request, path string) error
	// Show answers with a page, or with what the API said instead.
	Show(w http.ResponseWriter, r *http.Request, title string, body html.Part, err error) error
	// Write answers with a page that has a script, unless that is "".
	Write(w http.ResponseWriter, r *http.Request, status int, title string, body html.Part, module string) error
	// Rights are what the viewer may do; nil if that is not known.
	Rights(r *http.Request) *acl.Levels
	Shared
}

// Shared is what several pages show.
type Shared interface {
	Failed(r *http.Request, err error) html.Part // what went wrong, and what to do
	// Confirm asks whether to do what was asked for; question has the name of what it is about in %s.
	Confirm(at, back html.URL, what, question, button string, fields ...html.Part) html.Part
}

// Pages serves them.
type Pages struct{ Site }

// Routes are theirs; where they are answered and what they need is the same for all of the page.
func (p *Pages) Routes() []httpapi.Route {
	return []httpapi.Route{
		{Pattern: "GET /ui/topology", Handle: p.topology},
		{Pattern: "GET /ui/topology/data", Handle: p.topologyData},
		{Pattern: "GET /ui/clients/{node}", Handle: p.node},
		{Pattern: "POST /ui/clients/{node}/{action}", Handle: p.nodeAction, MaxBody: 64 << 10},
	}
}

// api is a path of the API with its variable parts escaped.
func api(parts ...string) string { return html.Path(append([]string{"v1"}, parts...)...).String() }

// Path is a node's page.
func Path(id string, more ...string) html.URL {
	return html.Path(append([]string{"ui", "clients", id}, more...)...)
}

// steers reports whether the viewer may change nodes, as far as that is known.
func (p *Pages) steers(r *http.Request) bool {
	l := p.Rights(r)
	return l == nil || l.Management || l.Node == "write"
}
