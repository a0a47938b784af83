package native

import (
	"net/http"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/policy"
)

// attentionOperations are those on the cluster as a whole.
func (f *Face) attentionOperations() []operation {
	return []operation{{
		Route: httpapi.Route{
			Pattern: "GET /v1/attention", Where: httpapi.Leader, Handle: f.attention,
			Need: httpapi.Filtered("the areas and concerns of what the caller may read"),
		},
		summary: "How the cluster is, and what of it wants attention, the worst first",
		out:     cluster.Attention{},
	}}
}

// attention answers GET /v1/attention. It is as old as a second on a large cluster, if many ask.
func (f *Face) attention(w http.ResponseWriter, r *http.Request) error {
	if f.Attention == nil {
		return drover.Errorf(drover.NotImplemented, "this agent is a node only: ask a server")
	}
	caller := httpapi.CallerOf(r.Context())
	a, err := f.Attention(r.Context(), cluster.Viewer{
		Servers: caller.Part(policy.Operator, policy.Read), Nodes: caller.Part(policy.Node, policy.Read),
		Fleet:   caller.Part(policy.Fleet, policy.Read),
		Jobs:    func(namespace string) bool { return caller.Namespace(namespace, policy.ReadJob) },
		Runners: func(namespace string) bool { return caller.Namespace(namespace, policy.ReadRunner) },
		Volumes: func(namespace string) bool { return caller.Namespace(namespace, policy.HostVolumeRead) },
	})
	return answer(w, r, http.StatusOK, a, err)
}
