package native

import (
	"fmt"
	"net/http"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/policy"
	"github.com/drover-project/drover/usage"
)

// usageOperations are those on what allocations use.
func (f *Face) usageOperations() []operation {
	return []operation{{
		Route: httpapi.Route{
			Pattern: "GET /v1/usage", Where: httpapi.Reads, Handle: f.usage,
			Need: httpapi.Filtered("the allocations of namespaces whose jobs the caller may read"),
		},
		summary: "What allocations use now, on whatever nodes they run: a sample of each, or why there is none",
		query: []param{{
			Name: "allocation", Kind: "strings", About: fmt.Sprintf("the id of an allocation; repeat it for up to %d", usage.MostInBatch),
		}},
		out: usage.Samples{},
	}, {
		Route: httpapi.Route{
			Pattern: "GET /v1/usage/history", Where: httpapi.Reads, Handle: f.usagePast,
			Need: httpapi.Filtered("an allocation of a namespace whose jobs the caller may read; nodes: node read"),
		},
		summary: "What an allocation or a node used in the last half hour, as far as somebody asked this server, and now",
		query: []param{
			{Name: "allocation", Kind: "string", About: "the id of an allocation"},
			{Name: "node_id", Kind: "string", About: "or the id of a node"},
		},
		out: usage.Past{},
	}}
}

// usage answers GET /v1/usage. Errors: Invalid.
func (f *Face) usage(w http.ResponseWriter, r *http.Request) error {
	if f.Usage == nil {
		return drover.Errorf(drover.NotImplemented, "this agent is a node only: ask a server")
	}
	ids := r.URL.Query()["allocation"]
	if len(ids) == 0 || len(ids) > usage.MostInBatch {
		return drover.Errorf(drover.Invalid, "allocation: want 1 to %d ids, got %d", usage.MostInBatch, len(ids))
	}
	caller := httpapi.CallerOf(r.Context())
	batch := f.Usage(r.Context(), ids, func(namespace string) bool { return caller.Namespace(namespace, policy.ReadJob) })
	return httpapi.WriteJSON(w, r, http.StatusOK, batch)
}

// usagePast answers GET /v1/usage/history. Errors: Invalid, NotFound, Forbidden.
func (f *Face) usagePast(w http.ResponseWriter, r *http.Request) error {
	if f.UsagePast == nil || f.NodePast == nil {
		return drover.Errorf(drover.NotImplemented, "this agent is a node only: ask a server")
	}
	allocation, node := r.URL.Query().Get("allocation"), r.URL.Query().Get("node_id")
	caller := httpapi.CallerOf(r.Context())
	switch {
	case (allocation == "") == (node == ""):
		return drover.Errorf(drover.Invalid, "want the id of one allocation, or node_id, that of one node")
	case allocation != "":
		past, err := f.UsagePast(r.Context(), allocation, func(namespace string) bool { return caller.Namespace(namespace, policy.ReadJob) })
		return answer(w, r, http.StatusOK, past, err)
	case !caller.Part(policy.Node, policy.Read):
		return httpapi.ErrDenied
	}
	return httpapi.WriteJSON(w, r, http.StatusOK, f.NodePast(r.Context(), node))
}
