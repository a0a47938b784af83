package native

import (
	"fmt"
	"net/http"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/policy"
)

// topologyOperations are those on where nodes are.
func (f *Face) topologyOperations() []operation {
	return []operation{{
		Route: httpapi.Route{
			Pattern: "GET /v1/topology", Where: httpapi.Reads, Need: httpapi.Level(policy.Node, policy.Read), Handle: f.topology,
		},
		summary: "Where all nodes are, how they are, and how full, in columns; with the Etag of an answer in If-None-Match it is 304 " +
			"while nothing changed",
		query: []param{
			{Name: "layout", Kind: "string", About: "the layout that the caller has: its columns are left out while it is the newest"},
		},
		out: cluster.Topology{},
	}}
}

// topology answers GET /v1/topology. It is as old as a moment on a large cluster that changes all the time.
func (f *Face) topology(w http.ResponseWriter, r *http.Request) error {
	if f.Topology == nil {
		return drover.Errorf(drover.NotImplemented, "this agent is a node only: ask a server")
	}
	whole, err := f.Topology(r.Context())
	if err != nil {
		return err
	}
	t, tag := *whole, fmt.Sprintf(`W/"%d-%s"`, whole.Index, whole.Layout)
	if t.Layout == r.URL.Query().Get("layout") {
		t = t.Without()
	}
	w.Header().Set("Etag", tag)
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	return httpapi.WriteJSON(w, r, http.StatusOK, t)
}
