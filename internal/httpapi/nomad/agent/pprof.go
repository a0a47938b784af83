package agent

import (
	"net/http"
	"net/http/pprof"
	"net/url"

	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/policy"
)

// pprofRoutes serve profiles under Nomad's paths. Only when configured: they tell a lot and cost CPU.
func (f *face) pprofRoutes() []httpapi.Route {
	profile := httpapi.Level(policy.Agent, policy.Write)
	return []httpapi.Route{
		{Pattern: "GET /v1/agent/pprof/cmdline", Where: httpapi.Member, Need: profile, Handle: f.here(pprof.Cmdline), Stream: true},
		{Pattern: "GET /v1/agent/pprof/profile", Where: httpapi.Member, Need: profile, Handle: f.here(oneSecond(pprof.Profile)), Stream: true},
		{Pattern: "GET /v1/agent/pprof/trace", Where: httpapi.Member, Need: profile, Handle: f.here(oneSecond(pprof.Trace)), Stream: true},
		{Pattern: "GET /v1/agent/pprof/{name}", Where: httpapi.Member, Need: profile, Handle: f.here(lookup), Stream: true},
	}
}

// oneSecond makes a second the default, as in Nomad; net/http/pprof's would be 30.
func oneSecond(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if s := q.Get("seconds"); s == "" || s == "0" {
			q.Set("seconds", "1")
		}
		h(w, withQuery(r, q))
	}
}

// lookup serves a named profile: heap, goroutine, … seconds=0 means none, not a delta.
func lookup(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	q.Del("seconds")
	pprof.Handler(r.PathValue("name")).ServeHTTP(w, withQuery(r, q))
}

// withQuery returns a copy of the request with another query. The parsed form is dropped, since it has the old one.
func withQuery(r *http.Request, q url.Values) *http.Request {
	c := r.Clone(r.Context())
	c.URL.RawQuery = q.Encode()
	c.Form = nil
	return c
}
