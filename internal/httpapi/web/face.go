package web

import (
	"net/http"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/web/admin"
	"github.com/drover-project/drover/internal/httpapi/web/find"
	"github.com/drover-project/drover/internal/httpapi/web/herd"
	"github.com/drover-project/drover/internal/httpapi/web/html"
	"github.com/drover-project/drover/internal/httpapi/web/lists"
	"github.com/drover-project/drover/internal/httpapi/web/nodeview"
	"github.com/drover-project/drover/internal/httpapi/web/parts"
	"github.com/drover-project/drover/internal/httpapi/web/play"
	"github.com/drover-project/drover/internal/httpapi/web/static"
	"github.com/drover-project/drover/internal/httpapi/web/viewers"
)

// Face serves the page.
type Face struct {
	// API answers the public API's requests; set before the first request. It is the handler that the face itself is part of.
	API   http.Handler
	Clock clock.Clock
	// Label is shown on every page; the zero value is none.
	Label   parts.Label
	Sources static.Sources // that browsers allow pages beside the agent; nil: none

	viewers viewers.Viewers // pages that are kept up to date
	idle    viewers.Viewers // pages that only hear that they are connected
}

// Routes serves httpapi.Face. No route looks at a token: the API does, of which the pages ask.
func (f *Face) Routes() []httpapi.Route {
	routes := []httpapi.Route{
		{Pattern: "GET /{$}", Handle: to(html.Path("ui", ""))},
		{Pattern: "GET /ui", Handle: to(html.Path("ui", ""))},
		{Pattern: "GET /ui/live", Handle: f.live, Stream: true},
		{Pattern: "GET /ui/{rest...}", Handle: f.unknown},
		{Pattern: "GET /ui/login", Handle: f.loginPage},
		{Pattern: "POST /ui/login", Handle: f.login, MaxBody: 64 << 10},
		{Pattern: "POST /ui/login/jwt", Handle: f.loginJWT, MaxBody: 64 << 10},
		{Pattern: "POST /ui/login/oidc", Handle: f.beginOIDC, MaxBody: 64 << 10},
		{Pattern: "GET " + callbackPath, Handle: f.endOIDC},
		{Pattern: "POST /ui/logout", Handle: f.logout},
		{Pattern: "POST /ui/theme", Handle: f.theme, MaxBody: 4 << 10},
		{Pattern: "GET /ui/static/{version}/{name}", Raw: static.Serve},
		{Pattern: "GET /ui/jobs/run", Handle: f.runPage},
		{Pattern: "POST /ui/jobs/run", Handle: f.runSubmit, MaxBody: 4 * drover.MaxJobSource},
		{Pattern: "GET /ui/jobs/{job}", Handle: f.job},
		{Pattern: "GET /ui/jobs/{job}/versions", Handle: f.jobVersions},
		{Pattern: "GET /ui/jobs/{job}/evaluations", Handle: f.jobEvaluations},
		{Pattern: "GET /ui/jobs/{job}/deployments", Handle: f.jobDeployments},
		{Pattern: "GET /ui/jobs/{job}/definition", Handle: f.jobDefinition},
		{Pattern: "POST /ui/jobs/{job}/{action}", Handle: f.jobAction, MaxBody: 256 << 10},
		{Pattern: "GET /ui/allocations/{allocation}", Handle: f.allocation},
		{Pattern: "GET /ui/allocations/{allocation}/logs", Handle: f.logs},
		{Pattern: "GET /ui/allocations/{allocation}/logs/live", Handle: f.logLive, Stream: true},
		{Pattern: "GET /ui/allocations/{allocation}/logs/file", Handle: f.logFile, Stream: true},
		{Pattern: "GET /ui/allocations/{allocation}/files", Handle: f.files},
		{Pattern: "GET /ui/allocations/{allocation}/files/raw", Handle: f.rawFile, Stream: true},
		{Pattern: "GET /ui/allocations/{allocation}/terminal", Handle: f.terminal},
		{Pattern: "GET /ui/allocations/{allocation}/terminal/live", Handle: f.terminalLive, Stream: true},
		{Pattern: "POST /ui/allocations/{allocation}/{action}", Handle: f.allocAction, MaxBody: 64 << 10},
	}
	routes = append(routes, (&herd.Pages{Site: site{f}}).Routes()...)
	routes = append(routes, (&admin.Pages{Site: site{f}}).Routes()...)
	routes = append(routes, (&find.Pages{Site: site{f}}).Routes()...)
	routes = append(routes, (&lists.Pages{Site: listSite{site{f}}}).Routes()...)
	routes = append(routes, (&nodeview.Pages{Site: nodeSite{site{f}}}).Routes()...)
	routes = append(routes, (&play.Pages{Site: site{f}, Clock: f.Clock}).Routes()...)
	for i := range routes {
		routes[i].Where, routes[i].Need = httpapi.Here, httpapi.Nothing
		if routes[i].Handle != nil {
			routes[i].Handle = remembering(routes[i].Handle)
		}
	}
	return routes
}

// WriteError serves httpapi.Face: an error is a page, too.
func (f *Face) WriteError(w http.ResponseWriter, r *http.Request, err error) {
	_ = f.write(w, r, httpapi.Status(err), view{title: text.Failed, body: failed(r, err)}) // the viewer may have left
}

// to redirects to an address.
func to(u html.URL) httpapi.Handle {
	return func(w http.ResponseWriter, r *http.Request) error {
		http.Redirect(w, r, u.String(), http.StatusSeeOther)
		return nil
	}
}

func (f *Face) unknown(w http.ResponseWriter, r *http.Request) error {
	body := html.Group(html.El("h1", html.Text(text.NoPage)), html.El("p", html.Text(text.NoPageMore)))
	return f.write(w, r, http.StatusNotFound, view{title: text.NoPage, body: body})
}
