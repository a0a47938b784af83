package nomad_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/nomad"
	"github.com/drover-project/drover/internal/id"
)

// FuzzRequests sends anything to the routes that answer at once: no panic, and no fault of ours (500) for what a
// client sends.
func FuzzRequests(f *testing.F) {
	for _, seed := range []struct{ method, path, query, body string }{
		{"PUT", "/v1/jobs", "", `{"Job":{"ID":"x","TaskGroups":[{"Name":"g",` +
			`"Tasks":[{"Name":"t","Driver":"d","Config":{"a":[1,{"b":2.5}]}}]}]}}`},
		{"PUT", "/v1/jobs", "", `{"Job":{"ID":"x","TaskGroups":[null,{"Tasks":[null]}],"Constraints":[null],"Update":{}}}`},
		{"PUT", "/v1/validate/job", "", `{"Job":{"ID":"x","Periodic":{},"ParameterizedJob":{},` +
			`"Spreads":[null],"TaskGroups":[{"Networks":[null],"Scaling":null}]}}`},
		{"GET", "/v1/jobs", "filter=Meta.team+is+not+empty&per_page=1", ""},
		{"GET", "/v1/jobs/statuses", "", ""},
		{"GET", "/v1/job/web/versions", "diffs=true", ""},
		{"PUT", "/v1/job/web/scale", "", `{"Count":3,"Target":{"Group":"g"}}`},
		{"DELETE", "/v1/job/web", "purge=true", ""},
		{"GET", "/v1/evaluations", "next_token=10.e&reverse=true", ""},
		{"PUT", "/v1/search/fuzzy", "", `{"Text":"we","Context":"all"}`},
		{"PUT", "/v1/node/" + nodeID + "/drain", "", `{"DrainSpec":{"Deadline":-1}}`},
		{"PUT", "/v1/deployment/pause/" + deplID, "", `{"Pause":true}`},
		{"GET", "/v1/client/fs/readat/" + allocID, "path=alloc/logs/t.stdout.0&offset=1&limit=2", ""},
		{"PUT", "/v1/client/allocation/" + allocID + "/signal", "", `{"Signal":"X"}`},
	} {
		f.Add(seed.method, seed.path, seed.query, seed.body)
	}
	f.Fuzz(func(t *testing.T, method, path, query, body string) {
		u, err := url.ParseRequestURI("/" + strings.TrimPrefix(path, "/") + "?" + query)
		if err != nil || !strings.HasPrefix(u.Path, "/v1/") || strings.Contains(query, "index") ||
			strings.Contains(u.Path, "/stream") || strings.Contains(u.Path, "logs") || strings.Contains(u.Path, "monitor") {
			return // what waits for events or logs has no end here
		}
		st := store.New()
		w := &world{store: st, node: newFakeNode()}
		w.seed()
		face := nomad.New(nomad.Config{
			State: storeState{st}, Intake: &fakeIntake{store: st}, Nodes: w, Events: newFakeEvents(),
			Agent: &fakeAgent{}, Clock: clock.Wall{}, ID: id.Random{}, Logger: quiet(),
		})
		h := httpapi.Handler(httpapi.Config{Logger: quiet(), Clock: clock.Wall{}}, withoutMetrics{face})
		rec := httptest.NewRecorder()
		r := &http.Request{Method: method, URL: u, Body: http.NoBody, Header: http.Header{}, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
		if body != "" {
			r.Body = io.NopCloser(strings.NewReader(body))
		}
		h.ServeHTTP(rec, r.WithContext(t.Context()))
		if rec.Code == http.StatusInternalServerError {
			t.Fatalf("%s %s %q: %s", method, u, body, rec.Body)
		}
	})
}

// withoutMetrics is the face without its metrics, which need an agent that has some.
type withoutMetrics struct{ *nomad.Face }

// Routes drops them.
func (p withoutMetrics) Routes() (routes []httpapi.Route) {
	for _, r := range p.Face.Routes() {
		if !strings.Contains(r.Pattern, "/v1/metrics") {
			routes = append(routes, r)
		}
	}
	return routes
}
