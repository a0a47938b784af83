package nomad

import "github.com/drover-project/drover/internal/httpapi/nomad/jobs"

// Endpoint is one line of the list of what this face serves.
type Endpoint struct {
	Pattern string // methods and path, as in Routes, with one line for each path below a job
	Refused string // the sentence of the 501 that is its answer; "" = it works
}

// Endpoints lists all that the face knows of Nomad's API, for the reference: what works in the order of Routes, then what
// is refused.
func Endpoints() []Endpoint {
	var works, refused []Endpoint
	refusals := map[string]bool{"/v1/": true} // the answer to all other paths
	for _, r := range Refusals() {
		for _, p := range r.Paths {
			refusals[p] = true
			refused = append(refused, Endpoint{Pattern: p, Refused: r.Why})
		}
	}
	for _, r := range New(Config{}).Routes() {
		if refusals[r.Pattern] {
			continue
		}
		paths := jobs.Paths(r.Pattern)
		if paths == nil {
			works = append(works, Endpoint{Pattern: r.Pattern})
		}
		for _, p := range paths {
			works = append(works, Endpoint{Pattern: p})
		}
	}
	return append(works, refused...)
}
