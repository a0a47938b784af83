package nomad

import (
	"net/http"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/policy"
)

// refusedRoutes are Nomad's endpoints that are not implemented: 501 with a sentence, never an empty 200. Every other path
// under /v1 is 404.
func refusedRoutes() []httpapi.Route {
	unknown := func(_ http.ResponseWriter, r *http.Request) error {
		return drover.Errorf(drover.NotFound, "no such path: %s", r.URL.Path)
	}
	routes := []httpapi.Route{{Pattern: "/v1/", Where: httpapi.Here, Need: httpapi.Anybody, Handle: unknown}}
	// Where there is nothing to license, Nomad's own answer is this one.
	none := func(w http.ResponseWriter, _ *http.Request) error {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	license := httpapi.Operator(policy.LicenseRead)
	routes = append(routes, httpapi.Route{Pattern: "GET /v1/operator/license", Where: httpapi.Here, Need: license, Handle: none})
	for _, r := range Refusals() {
		for _, p := range r.Paths {
			routes = append(routes, httpapi.Route{Pattern: p, Where: httpapi.Here, Need: httpapi.Anybody, Handle: refuse(r.Why)})
		}
	}
	return routes
}

// Refusal is a group of Nomad's endpoints that are answered with 501.
type Refusal struct {
	Why   string   // the sentence of the answer
	Paths []string // patterns of net/http.ServeMux; one that ends in a slash stands for all below it
}

// Refusals lists Nomad's endpoints that are known and not here.
func Refusals() []Refusal {
	return []Refusal{
		{"sentinel policies are not implemented", []string{"/v1/sentinel/"}},
		{"recommendations are not implemented", []string{
			"/v1/recommendations", "/v1/recommendations/", "/v1/recommendation", "/v1/recommendation/",
		}},
		{"CSI is not implemented", []string{"/v1/volumes/", "/v1/volume/", "/v1/plugins", "/v1/plugin/"}},
		{"exporting old log files is not implemented; use /v1/agent/monitor", []string{"/v1/agent/monitor/export"}},
		{"utilization reports are not implemented", []string{"/v1/operator/utilization", "/v1/operator/upgrade-check/"}},
		{"pausing tasks is not implemented", []string{"/v1/client/allocation/{id}/pause"}},
	}
}

func refuse(sentence string) httpapi.Handle {
	return func(http.ResponseWriter, *http.Request) error {
		return drover.Errorf(drover.NotImplemented, "%s", sentence)
	}
}
