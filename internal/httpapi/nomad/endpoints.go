package nomad

import (
	"maps"
	"slices"
	"strings"
)

// Endpoint is one line of the list of what this face serves.
type Endpoint struct {
	Pattern string // methods and path, as in Routes, with one line for each path below a job
	Refused string // the sentence of the 501 that is its answer; "" = it works
}

// Endpoints lists all that the face knows of Nomad's API, for the reference: what works in the order of Routes, then what
// is refused.
func Endpoints() []Endpoint {
	f := &Face{}
	var works, refused []Endpoint
	refusals := map[string]bool{"/v1/": true} // the answer to all other paths
	for _, r := range Refusals() {
		for _, p := range r.Paths {
			refusals[p] = true
			refused = append(refused, Endpoint{Pattern: p, Refused: r.Why})
		}
	}
	for _, r := range f.Routes() {
		switch {
		case refusals[r.Pattern]:
		case r.Pattern == "GET /v1/job/{rest...}":
			for _, suffix := range slices.Sorted(maps.Keys(f.jobReads())) {
				e := Endpoint{Pattern: "GET " + jobRoot + "{id}" + suffix}
				if suffix == "/action" {
					e.Refused = actionRefused
					refused = append(refused, e)
					continue
				}
				works = append(works, e)
			}
		case r.Pattern == "PUT,POST /v1/job/{rest...}":
			for _, suffix := range slices.Sorted(maps.Keys(f.jobWrites())) {
				works = append(works, Endpoint{Pattern: "PUT,POST " + jobRoot + "{id}" + suffix})
			}
			works = append(works, Endpoint{Pattern: "PUT,POST " + jobRoot + "{id}" + "/versions/{name}/tag"})
		case strings.HasPrefix(r.Pattern, "DELETE /v1/job/"):
			works = append(works, Endpoint{Pattern: "DELETE " + jobRoot + "{id}"}, Endpoint{Pattern: "DELETE " + jobRoot + "{id}" + "/versions/{name}/tag"})
		default:
			works = append(works, Endpoint{Pattern: r.Pattern})
		}
	}
	return append(works, refused...)
}
